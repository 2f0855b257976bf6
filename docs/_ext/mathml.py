"""Formulas as MathML, which browsers draw themselves: no script, no fonts from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert

BAR = '<mo stretchy="false">&#x0007C;</mo>'  # as in |S|: without the space of an operator


def mathml(node, display):
    """Return the formula of a node."""
    text = node.astext().replace(r"\setminus", r"\smallsetminus")  # the sign of the first is in few fonts: an empty box
    return convert(text, display=display).replace(BAR, BAR.replace("<mo", '<mo lspace="0" rspace="0"'))


def visit_inline(writer, node):
    writer.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(f'<div class="formula">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
