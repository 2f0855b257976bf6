"""Networks of one hidden layer, exactly: each unit is a function of one sum."""

from __future__ import annotations

from exactshap.readers.networks.one_layer import NetworkReader, OneLayerNetwork

__all__ = ["NetworkReader", "OneLayerNetwork"]
