"""vLLM's own argument parser takes the line that eyas prints, and reads what is meant."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

from eyas.engines import EngineRef
from eyas.engines.serving import serving_command
from eyas.probe.answer import interpreter_of

# Run by vLLM's Python: the words behind `vllm serve`, as its own command parses them.
PARSE = """
import json, sys
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
taken = make_arg_parser(FlexibleArgumentParser()).parse_args(json.loads(sys.argv[1]))
print("TAKEN", json.dumps([taken.model_tag, taken.speculative_config]))
"""


def test_the_parser_takes_the_line_that_eyas_prints(shipped: Path, smollm2: Path) -> None:
    ref = EngineRef.parse("vllm@0.32.0:v1")
    line = shlex.split(serving_command(ref, str(shipped), str(smollm2), steps=4))
    assert line[:3] == ["VLLM_USE_V2_MODEL_RUNNER=0", "vllm", "serve"]
    asked = interpreter_of("vllm", "0.32.0", None)
    done = subprocess.run(
        [asked.python, "-c", PARSE, json.dumps(line[3:])],
        env=os.environ | dict(asked.variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (said,) = [text for text in done.stdout.splitlines() if text.startswith("TAKEN ")]
    assert json.loads(said.removeprefix("TAKEN ")) == [
        str(smollm2),
        {"method": "eagle3", "model": str(shipped), "num_speculative_tokens": 4},
    ]
