"""Parse ONNX files as untrusted data, trace their columns up to their one model, and run them."""

from __future__ import annotations

from exactshap._graphs._document import Attributes as Attributes
from exactshap._graphs._document import refused as refused
from exactshap._graphs._file import Core as Core
from exactshap._graphs._file import LinearCore as LinearCore
from exactshap._graphs._file import OnnxFile as OnnxFile
from exactshap._graphs._file import Parts as Parts
from exactshap._graphs._file import Runner as Runner
from exactshap._graphs._file import SupportCore as SupportCore
from exactshap._graphs._file import TreeCore as TreeCore
from exactshap._graphs._file import column_names as column_names
from exactshap._graphs._file import dtype_of as dtype_of
from exactshap._graphs._file import feeds_of as feeds_of
from exactshap._graphs._file import numbers_of as numbers_of
