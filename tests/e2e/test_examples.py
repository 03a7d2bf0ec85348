#!/usr/bin/python3
"""What the README and examples/ show works as it stands there, on the sample repository."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import harness
from harness import ROOT, Server

import ocr_grpc
import ocr_http
import ocr_line

WITHIN_S = 60
PICTURES = 20


def snippets(language):
    """The README's code blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-e2e-")
        subprocess.run([ROOT / "scripts/make_sample_repository.sh", cls.folder.name], check=True)
        cls.server = Server("--repository", cls.folder.name).wait_ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def output_of(self, *command, text=None):
        ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=WITHIN_S)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def at_server(self, snippet):
        self.assertIn("localhost:8000", snippet)
        return snippet.replace("localhost:8000", self.server.http)

    def test_readme_curl(self):
        block = next(s for s in snippets("") if s.startswith("curl"))
        output = self.output_of("bash", "-e", text=self.at_server(block))
        self.assertRegex(output, r'"data":\[1(\.0)?,2\.5,-3(\.0)?\]')

    def test_readme_python(self):
        output = self.output_of(sys.executable, "-", text=self.at_server(snippets("python")[0]))
        self.assertEqual(output, "[ 1.   2.5 -3. ]\n")

    def test_readme_node(self):
        output = self.output_of("node", "--input-type=module", "-", text=self.at_server(snippets("js")[0]))
        self.assertEqual(output, "[ 1, 2.5, -3 ]\n")

    def test_examples_with_curl_and_node(self):
        url = f"http://{self.server.http}"
        self.assertIn('"OUTPUT0"', self.output_of(ROOT / "examples/infer.sh", url))
        self.assertEqual(self.output_of("node", ROOT / "examples/infer.mjs", url), "OUTPUT0 [ 1, 2.5, -3 ]\n")

    def test_the_programs_read_a_picture_of_a_random_text(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = str(Path(folder) / "line.png")
            text = self.output_of(ROOT / "examples/draw_line.py", picture)
            self.assertRegex(text, rf"^[{ocr_line.ALPHABET}]{{{ocr_line.RANDOM_LENGTH}}}\n$")
            for model in ("ocr_rec", "ocr_rec_batched"):
                self.assertEqual(self.output_of(ROOT / "examples/ocr_http.py", picture, "--model", model,
                                                "--url", f"http://{self.server.http}"), text)
                self.assertEqual(self.output_of(ROOT / "examples/ocr_grpc.py", picture, "--model", model,
                                                "--address", self.server.grpc), text)

    def test_many_random_texts_are_read_without_a_fault(self):
        keys = ocr_line.load_keys()
        for _ in range(PICTURES):
            text = ocr_line.random_text()
            tensor = ocr_line.to_tensor(ocr_line.draw(text))
            over_http = ocr_http.infer(f"http://{self.server.http}", "ocr_rec", tensor)
            over_grpc = ocr_grpc.infer(self.server.grpc, "ocr_rec", tensor)
            self.assertEqual(ocr_line.to_text(over_http[0], keys), text)
            self.assertEqual(over_http.tobytes(), over_grpc.tobytes())


if __name__ == "__main__":
    harness.main()
