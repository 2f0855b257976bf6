"""Read networks of one hidden layer exactly, as each unit is a function of one sum."""

from __future__ import annotations

from exactshap.readers.networks.one_layer import OneLayerNetwork as OneLayerNetwork
