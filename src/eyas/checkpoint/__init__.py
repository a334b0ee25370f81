"""A drafter's files as a config and tensor headers; bytes only when asked for."""

from eyas.checkpoint.cache import cache_dir
from eyas.checkpoint.checkpoint import Checkpoint, Format, open_checkpoint
from eyas.checkpoint.gguf import LongList
from eyas.checkpoint.header import TensorHeader, read_headers
from eyas.checkpoint.place import SINGLE_FILES
from eyas.checkpoint.sparse import write_sparse
from eyas.checkpoint.target import TargetFacts, open_target
from eyas.checkpoint.whole_file import whole_file
from eyas.checkpoint.write import TensorBytes, require_new, write_checkpoint

__all__ = [
    "SINGLE_FILES",
    "Checkpoint",
    "Format",
    "LongList",
    "TargetFacts",
    "TensorBytes",
    "TensorHeader",
    "cache_dir",
    "open_checkpoint",
    "open_target",
    "read_headers",
    "require_new",
    "whole_file",
    "write_checkpoint",
    "write_sparse",
]
