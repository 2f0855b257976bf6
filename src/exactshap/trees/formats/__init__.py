"""Convert model files and live models of each library to ensembles; files are parsed as untrusted data."""

from __future__ import annotations

from exactshap.trees.formats._convert import convert as convert
from exactshap.trees.formats._convert import flatten as flatten
from exactshap.trees.formats._load import load as load
from exactshap.trees.formats._load import loads as loads
from exactshap.trees.formats.sklearn import average_path_length as average_path_length
from exactshap.trees.formats.sksurv import CURVES as CURVES
from exactshap.trees.formats.sksurv import curve_columns as curve_columns
from exactshap.trees.formats.sksurv import of_curve as of_curve
