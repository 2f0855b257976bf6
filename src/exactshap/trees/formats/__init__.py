"""Convert model files and live models of each library to ensembles; files are parsed as untrusted data."""

# ruff: noqa: F401 - names of the room
from exactshap.trees.formats._convert import convert, load, loads
from exactshap.trees.formats.sklearn import CURVES, average_path_length, curve_columns, of_curve
