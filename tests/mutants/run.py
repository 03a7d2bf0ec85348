"""Runs the mutants: see run.sh. A mutant is a patch with two fields before it:

    Fault: what is wrong, in one line
    Caught-by: PROGRAM ARGUMENTS...     (a program of the build folder that must fail)
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
CCACHE = shutil.which("ccache")
MAX_TEST_SECONDS = 60
MAX_BUILD_SECONDS = 600


class Mutant:
    def __init__(self, path):
        self.name = path.stem
        self.path = path
        text = path.read_text()
        self.fault = _field(text, "Fault", path)
        self.caught_by = shlex.split(_field(text, "Caught-by", path))
        sources = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
        if len(sources) != 1:
            raise SystemExit(f"{path}: a mutant changes exactly one file, this one {len(sources)}")
        self.source = sources[0]

    @property
    def program(self):
        return self.caught_by[0]


def _field(text, name, path):
    found = re.search(rf"^{name}: (.+)$", text, re.MULTILINE)
    if not found:
        raise SystemExit(f"{path}: no line '{name}: ...'")
    return found.group(1)


class Build:
    """A preset's build folder, asked for its own compile and link commands."""

    def __init__(self, folder):
        self.folder = folder
        self.out = ROOT / "build" / "mutants"
        if not (folder / "build.ninja").exists():
            _run(["cmake", "--preset", folder.name], MAX_BUILD_SECONDS, ROOT)

    def make(self, programs):
        _run(["ninja", "-C", str(self.folder), *programs], MAX_BUILD_SECONDS)
        commands = json.loads((self.folder / "compile_commands.json").read_text())
        self.compile = {os.path.realpath(entry["file"]): entry for entry in commands}

    def mutate(self, mutant):
        """The mutated program's path."""
        folder = self.out / mutant.name
        source = folder / pathlib.Path(mutant.source).name
        folder.mkdir(parents=True, exist_ok=True)
        _run(["patch", "--silent", "--force", f"--output={source}", str(ROOT / mutant.source), str(mutant.path)], 10)
        obj = source.with_suffix(".o")
        self._compile(ROOT / mutant.source, source, obj)
        return self._link(mutant.program, obj, folder)

    def _compile(self, original, source, obj):
        entry = self.compile.get(str(original))
        if entry is None:
            raise RuntimeError(f"{original} is not compiled in {self.folder}")
        words = shlex.split(entry["command"])
        words[words.index("-o") + 1] = str(obj)
        words[words.index("-c") + 1] = str(source)
        # Beside the original, so that includes by quotes are found; quick to compile, no debugging of it.
        words += ["-iquote", str(original.parent), "-O1", "-g0", "-Wno-error"]
        launcher = [CCACHE] if CCACHE and not words[0].endswith("ccache") else []
        _run(launcher + words, MAX_BUILD_SECONDS, entry["directory"])

    def _link(self, program, obj, folder):
        rule = _run(["ninja", "-C", str(self.folder), "-t", "commands", "-s", program], 30)
        link = next(part for part in rule.split("&&") if f"-o {program} " in part)
        words = shlex.split(link)
        at = words.index("-o")
        mutated = folder / pathlib.Path(program).name
        words[at:at + 2] = [str(obj), "-o", str(mutated)]
        _run(words, MAX_BUILD_SECONDS, self.folder)
        return mutated

    def passes(self, program, arguments):
        try:
            done = subprocess.run([str(program), *arguments], cwd=self.folder, timeout=MAX_TEST_SECONDS,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return False, f"did not end in {MAX_TEST_SECONDS} s"
        return done.returncode == 0, _first_failure(done.stdout.decode(errors="replace"))


def _first_failure(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"FAILED|Failure|check failed|findings", line)]
    return (telling or lines or ["no output"])[0]


def _run(command, limit_s, cwd=None):
    done = subprocess.run(command, cwd=cwd, timeout=limit_s, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} ...: exit {done.returncode}\n{done.stdout.decode()[-2000:]}")
    return done.stdout.decode()


def _judge(build, mutant):
    """None when the fault is caught as it must be, else why not."""
    try:
        program = build.mutate(mutant)
    except (RuntimeError, StopIteration, ValueError) as error:
        return f"cannot be built: {error}", ""
    passed, line = build.passes(program, mutant.caught_by[1:])
    return ("is not caught" if passed else None), line


def _check_unmutated(build, mutants):
    """The same commands pass without a fault. Returns how many do not."""
    bad = 0
    for command in sorted({tuple(mutant.caught_by) for mutant in mutants}):
        passed, line = build.passes(build.folder / command[0], command[1:])
        if not passed:
            bad += 1
            print(f"FAILED without any fault: {shlex.join(command)}: {line}")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    mutants = [Mutant(path) for path in sorted(HERE.glob("*/*.patch"))]
    if options.names:
        mutants = [mutant for mutant in mutants if mutant.name in options.names]
    if not mutants:
        raise SystemExit("no mutants of that name")
    begun = time.monotonic()
    build = Build(options.build.resolve())
    build.make(sorted({mutant.program for mutant in mutants}))
    failed = _check_unmutated(build, mutants)
    caught = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, (reason, line) in zip(mutants, pool.map(lambda m: _judge(build, m), mutants)):
            if reason:
                failed += 1
                print(f"FAILED {mutant.name} ({mutant.fault}): {reason}")
            else:
                caught += 1
                print(f"caught {mutant.name}: {line}")
    print(f"{time.monotonic() - begun:.0f} s")
    print(f"{caught} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
