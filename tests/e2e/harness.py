"""Starts the real binary on free ports of the loopback, talks to it, stops it by its process id.

A test module ends with `harness.main()`: it runs the tests and prints `N passed, N failed` last.
"""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SLUICE = os.environ.get("SLUICE", str(ROOT / "build/release/sluice"))
MODELS = ROOT / ".deps/models"
START_WITHIN_S = 30
READY_WITHIN_S = 60
STOP_WITHIN_S = 40
ANSWER_WITHIN_S = 30
POLL_S = 0.02

sys.path.insert(0, str(ROOT / "examples"))
sys.dont_write_bytecode = True


def until(what, condition, within_s):
    """The first true value of `condition`; fails after `within_s`."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {within_s} s")
        select.select([], [], [], POLL_S)
    return value


class Repository:
    """A model repository in a temporary folder."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="sluice-e2e-"))

    def remove(self):
        shutil.rmtree(self.path)

    def add_identity(self, name, dims="[ -1 ]", datatype="TYPE_FP32", more=""):
        (self.path / name / "1").mkdir(parents=True)
        (self.path / name / "config.pbtxt").write_text(
            f'backend: "identity"\nmax_batch_size: 64\n'
            f'input [ {{ name: "INPUT0" data_type: {datatype} dims: {dims} }} ]\n'
            f'output [ {{ name: "OUTPUT0" data_type: {datatype} dims: {dims} }} ]\n{more}\n')
        return self

    def add_slow(self, name, busy_us, more="", max_batch_size=1):
        """An identity model that takes `busy_us` a batch, on the compute pool."""
        self.add_identity(name, more=f"""
parameters {{ key: "busy_us" value {{ string_value: "{busy_us}" }} }}
parameters {{ key: "sluice.inline" value {{ string_value: "false" }} }}
{more}""")
        config = self.path / name / "config.pbtxt"
        config.write_text(config.read_text().replace("max_batch_size: 64", f"max_batch_size: {max_batch_size}"))
        return self

    def add_onnx(self, name, file, config=None):
        (self.path / name / "1").mkdir(parents=True)
        shutil.copy(MODELS / file, self.path / name / "1" / "model.onnx")
        if config:
            (self.path / name / "config.pbtxt").write_text(config)
        return self


class Server:
    """`sluice serve` with what the arguments say, on free ports."""

    def __init__(self, *arguments, ports=("--http-port=0", "--grpc-port=0", "--metrics-port=0")):
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([SLUICE, "serve", *map(str, arguments), *ports],
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        try:
            self._read_addresses()
        except BaseException:
            self.close()
            raise

    def _read_addresses(self):
        ready, _, _ = select.select([self.process.stdout], [], [], START_WITHIN_S)
        line = self.process.stdout.readline() if ready else ""
        match = re.fullmatch(r"listening http=(\S+) grpc=(\S+) metrics=(\S+)\n", line)
        if not match:
            raise AssertionError(f"not the line of the ports: {line!r}; {self.log()}")
        self.http, self.grpc, self.metrics = match.groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def log(self):
        self.errors.seek(0)
        return self.errors.read()

    def is_ready(self):
        try:
            return self.get("/v2/health/ready")[0] == 200
        except OSError:
            return False

    def wait_ready(self):
        until("ready", lambda: self.process.poll() is not None or self.is_ready(), READY_WITHIN_S)
        if self.process.poll() is not None:
            raise AssertionError(f"the server has ended: {self.log()}")
        return self

    def send_signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait_exit(self, within_s=STOP_WITHIN_S):
        return self.process.wait(within_s)

    def stop(self):
        self.send_signal()
        return self.wait_exit()

    def connection(self, address=None):
        host, port = (address or self.http).rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=ANSWER_WITHIN_S)

    def socket(self, address=None):
        host, port = (address or self.http).rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN_S)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, body) over a connection of its own."""
        connection = self.connection()
        try:
            return exchange(connection, method, path, body, headers)
        finally:
            connection.close()

    def get(self, path):
        return self.request("GET", path)

    def infer(self, model, *inputs, **more):
        body = json.dumps({"inputs": list(inputs), **more})
        status, _, answer = self.request("POST", f"/v2/models/{model}/infer", body)
        return status, json.loads(answer)

    def scrape(self):
        connection = self.connection(self.metrics)
        try:
            status, headers, body = exchange(connection, "GET", "/metrics")
        finally:
            connection.close()
        assert status == 200, status
        return headers, body.decode()

    def rss_kb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def exchange(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response.status, response.headers, response.read()


def tensor(values, shape=None, name="INPUT0", datatype="FP32"):
    return {"name": name, "datatype": datatype, "shape": shape or [1, len(values)], "data": values}


def run(*arguments, within_s=60):
    """A finished `sluice` command."""
    return subprocess.run([SLUICE, *map(str, arguments)], capture_output=True, text=True, timeout=within_s)


def sample(text, name, **labels):
    """The value of one line of Prometheus text, 0 where it is absent."""
    total = 0.0
    for line in text.splitlines():
        match = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
        if match and all(f'{key}="{value}"' in (match.group(1) or "") for key, value in labels.items()):
            total += float(match.group(2))
    return total


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors)
    print(f"{max(0, result.testsRun - bad)} passed, {bad} failed", flush=True)
    sys.exit(1 if bad else 0)
