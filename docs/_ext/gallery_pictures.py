"""Settings of matplotlib for the pictures of the gallery."""


def whole_pictures(gallery_conf, name):
    """Save all that was drawn, as notebooks do: a long label may reach beyond its figure."""
    import matplotlib.pyplot as plt

    plt.rcParams["savefig.bbox"] = "tight"
    plt.rcParams["savefig.pad_inches"] = 0.08
