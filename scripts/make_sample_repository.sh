#!/usr/bin/env bash
# Makes a model repository in Triton's layout from the sample models of scripts/install_deps.sh:
#   ocr_rec          PP-OCRv4 text recognition, no config.pbtxt: it is completed from the model
#   ocr_rec_batched  the same model with a partial config.pbtxt that says how to batch
#   ocr_cls          is a line of text upside down? No config.pbtxt
#   silero_vad       does a piece of audio hold speech? Its state goes in and out with each call
#   echo             the built-in identity backend: gives its input back
# Usage: scripts/make_sample_repository.sh DIR
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { echo "usage: make_sample_repository.sh DIR" >&2; exit 2; }
dir=$1
models=$root/.deps/models

add_onnx() {  # NAME FILE
  mkdir -p "$dir/$1/1"
  cp -u "$models/$2" "$dir/$1/1/model.onnx"
}

add_config() {  # NAME: its text from standard input
  mkdir -p "$dir/$1/1"
  cat > "$dir/$1/config.pbtxt"
}

add_onnx ocr_rec ch_PP-OCRv4_rec_infer.onnx
add_onnx ocr_rec_batched ch_PP-OCRv4_rec_infer.onnx
add_onnx ocr_cls ch_ppocr_mobile_v2.0_cls_infer.onnx
add_onnx silero_vad silero_vad_half.onnx

add_config ocr_rec_batched <<'CONFIG'
max_batch_size: 8
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 2000
  default_queue_policy { max_queue_size: 256 }
}
instance_group [ { count: 1 kind: KIND_CPU } ]
CONFIG

add_config echo <<'CONFIG'
backend: "identity"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
CONFIG
