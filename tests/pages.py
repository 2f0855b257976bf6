"""Pages as text: what a hostile name may hold, and what a browser would make of a page."""

from html.parser import HTMLParser

EVIL = [
    '<script>window.hacked="a"</script>',
    "</title></style></svg></script><script>window.hacked='b'</script>",
    '"><img src=x onerror="window.hacked=1">',
    "javascript:window.hacked=1",
    "a\u2028b\u2029c\x00d\u202ee\x1b[31m",
    "{{ 7*7 }}<!--<script>",
    "datum['x'] ? (window.hacked=1) : 0",
    "a.b[c]\\d",
]
VOID = {"meta", "br", "link", "img", "hr", "input", "wbr"}
NOTHING_OF = {"script", "link", "iframe", "object", "img", "embed", "form", "a", "image"}


class Page(HTMLParser):
    """Reads a page: all text, all tags, and whether every tag is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.html, self.words, self.tags, self.attributes, self.open = html, [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == [], self.open
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        # A place where a word may be broken is within it
        if self.tags[-1:] == ["wbr"] and self.words:
            self.words[-1] += data
        else:
            self.words.append(data)

    def assert_runs_nothing(self):
        """Hold the page against what a page without scripts must not have."""
        assert not NOTHING_OF & set(self.tags)
        asking = ("src", "href", "xlink:href", "action", "data")
        assert not [name for name, _ in self.attributes if name.startswith("on") or name in asking]
        assert "default-src 'none'" in self.html
        assert "url(" not in self.html
        assert "@import" not in self.html
