#!/usr/bin/python3
"""A scrape is well-formed Prometheus text, has what dashboards for Triton read, and counts what happened."""

import re
import unittest

import harness
from harness import Repository, Server, sample, tensor

SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*=\"(?:[^\"\\\n]|\\[\\n\"])*\",?)*)\})? "
                    r"([-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|Inf|NaN))")
TRITON = ["nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count",
          "nv_inference_exec_count", "nv_inference_request_duration_us", "nv_inference_queue_duration_us",
          "nv_inference_compute_input_duration_us", "nv_inference_compute_infer_duration_us",
          "nv_inference_compute_output_duration_us", "nv_inference_pending_request_count",
          "nv_model_load_duration_secs", "nv_inference_first_response_histogram_ms", "nv_cpu_utilization",
          "nv_cpu_memory_used_bytes"]
STAGES = ["wire_in", "queue", "assembly", "compute", "wire_out", "total"]


def parse(text):
    """family -> (type, [(name, labels, value)]); fails on a line that is not the format's."""
    families, current = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current not in families, f"{current} twice"
            families[current] = (kind, [])
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, f"not a sample: {line!r}"
            name, labels, value = match.groups()
            stem = re.sub(r"_(bucket|sum|count)$", "", name)
            assert current in (name, stem), f"{name} stands under {current}"
            families[current][1].append((name, labels or "", float(value)))
    return families


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = Repository().add_identity("echo").add_identity("other")
        cls.server = Server("--repository", cls.repository.path).wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.repository.remove()

    def test_the_text_is_well_formed(self):
        self.server.infer("echo", tensor([1]))
        headers, text = self.server.scrape()
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers["Content-Type"])
        self.assertTrue(text.endswith("\n"))
        families = parse(text)
        for name in TRITON + ["sluice_stage_seconds", "sluice_batch_rows", "sluice_batches_closed_total"]:
            self.assertIn(name, families)
        for name, (kind, samples) in families.items():
            self.assertEqual(len({s[:2] for s in samples}), len(samples), f"{name}: a sample twice")
            if kind == "histogram":
                self.check_histogram(name, samples)

    def check_histogram(self, name, samples):
        series = {}
        for sample_name, labels, value in samples:
            bare = re.sub(r',?le="[^"]*"', "", labels).strip(",")
            entry = series.setdefault(bare, {"buckets": []})
            if sample_name.endswith("_bucket"):
                bound = re.search(r'le="([^"]*)"', labels).group(1)
                entry["buckets"].append((float(bound.replace("+Inf", "inf")), value))
            else:
                entry[sample_name.removeprefix(name)] = value
        for labels, entry in series.items():
            bounds = [b for b, _ in entry["buckets"]]
            counts = [c for _, c in entry["buckets"]]
            self.assertEqual(bounds, sorted(bounds), (name, labels))
            self.assertEqual(counts, sorted(counts), (name, labels))
            self.assertEqual(bounds[-1], float("inf"))
            self.assertEqual(counts[-1], entry["_count"], (name, labels))
            self.assertIn("_sum", entry)

    def test_counts_move_by_what_happened(self):
        before = self.server.scrape()[1]
        for i in range(7):
            self.assertEqual(self.server.infer("echo", tensor([i, i, i, i], [2, 2]))[0], 200)
        for _ in range(3):
            self.assertEqual(self.server.infer("echo", tensor([1], name="WRONG"))[0], 400)
        after = self.server.scrape()[1]

        def moved(name, **labels):
            return sample(after, name, **labels) - sample(before, name, **labels)
        self.assertEqual(moved("nv_inference_request_success", model="echo"), 7)
        self.assertEqual(moved("nv_inference_request_failure", model="echo"), 3)
        self.assertEqual(moved("nv_inference_count", model="echo"), 14)
        self.assertEqual(moved("nv_inference_exec_count", model="echo"), 7)
        self.assertEqual(moved("sluice_batches_closed_total", model="echo"), 7)
        self.assertEqual(moved("sluice_batch_rows_count", model="echo"), 7)
        self.assertEqual(moved("sluice_batch_rows_sum", model="echo"), 14)
        for stage in STAGES:
            self.assertEqual(moved("sluice_stage_seconds_count", model="echo", stage=stage), 7, stage)
        self.assertEqual(moved("nv_inference_request_success", model="other"), 0)


if __name__ == "__main__":
    harness.main()
