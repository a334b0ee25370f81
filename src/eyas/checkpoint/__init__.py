"""A drafter's files as a config and tensor headers; bytes only when asked for."""

from eyas.checkpoint.cache import cache_dir
from eyas.checkpoint.checkpoint import Checkpoint, Format, open_checkpoint
from eyas.checkpoint.gguf import LongList
from eyas.checkpoint.header import TensorHeader, read_headers
from eyas.checkpoint.place import SINGLE_FILES
from eyas.checkpoint.same_bytes import same_bytes
from eyas.checkpoint.spans import Span
from eyas.checkpoint.sparse import write_sparse
from eyas.checkpoint.staging import require_new, staged
from eyas.checkpoint.target import TargetFacts, open_target
from eyas.checkpoint.unchanged import Unchanged
from eyas.checkpoint.whole_file import whole_file
from eyas.checkpoint.write import TensorBytes, write_checkpoint

__all__ = [
    "SINGLE_FILES",
    "Checkpoint",
    "Format",
    "LongList",
    "Span",
    "TargetFacts",
    "TensorBytes",
    "TensorHeader",
    "Unchanged",
    "cache_dir",
    "open_checkpoint",
    "open_target",
    "read_headers",
    "require_new",
    "same_bytes",
    "staged",
    "whole_file",
    "write_checkpoint",
    "write_sparse",
]
