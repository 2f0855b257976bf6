"""Compute statistics of parts of a table that add up to those of the whole."""

from __future__ import annotations

from exactshap.scale.statistics._importance import GlobalImportance as GlobalImportance
from exactshap.scale.statistics._quantiles import GlobalQuantiles as GlobalQuantiles
from exactshap.scale.statistics._ridge import PartialRidge as PartialRidge
