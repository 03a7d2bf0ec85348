#!/usr/bin/env bash
# The same with curl: health, what a model takes, one inference. Usage: examples/infer.sh [URL]
set -euo pipefail
url=${1:-http://127.0.0.1:8000}
curl -fsS "$url/v2/health/ready" && echo "ready"
curl -fsS "$url/v2/models/echo" && echo
curl -fsS "$url/v2/models/echo/infer" \
  -d '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,3],"data":[1,2.5,-3]}]}'
echo
