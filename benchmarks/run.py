"""Run every benchmark (or those named on the command line) and write benchmarks/RESULTS.md.

    python benchmarks/run.py            all of them
    python benchmarks/run.py kernels    bench_kernels.py only; the other sections of RESULTS.md stay

Each file runs in a process of its own, ours and the peers side by side; trust ratios, not absolute times.
"""

import importlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = [
    "exactshap",
    "numpy",
    "scipy",
    "scikit-learn",
    "shap",
    "shapiq",
    "qshap",
    "woodelf-explainer",
    "lightshap",
    "xgboost-cpu",
    "xgboost",
    "lightgbm",
    "catboost",
    "interpret",
    "interpret-core",
]


def main(names):
    sections = read_sections()
    for file in sorted(HERE.glob("bench_*.py")):
        name = file.stem.removeprefix("bench_")
        if names and name not in names:
            continue
        print(f"running {file.name}", flush=True)
        code = f"import json, {file.stem} as bench; print('RESULT' + json.dumps(bench.run(), default=str))"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        finished = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, env=environment)
        if finished.returncode:
            print(finished.stderr[-3000:])
            raise SystemExit(f"{file.name} failed")
        line = next(line for line in finished.stdout.splitlines() if line.startswith("RESULT"))
        module = importlib.import_module(file.stem) if str(HERE) in sys.path else None
        title = name if module is None else module.__doc__.strip().splitlines()[0].removesuffix(".")
        sections[name] = f"## {title}\n\n{table(json.loads(line[6:]))}"
    text = [header(), *(f"<!-- {name} -->\n{section.strip()}\n" for name, section in sorted(sections.items()))]
    (HERE / "RESULTS.md").write_text("\n".join(text), encoding="utf-8")


def read_sections():
    path = HERE / "RESULTS.md"
    if not path.exists():
        return {}
    parts = re.split(r"<!-- (\w+) -->\n", path.read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def header():
    versions = ", ".join(f"{name} {version}" for name in PACKAGES if (version := version_of(name)))
    return (
        "# Benchmark results\n\nWritten by `python benchmarks/run.py`. Seconds are the best of several runs; ours and the peer ran in "
        "the same process, one thread each unless said. Trust ratios, not absolute times.\n\n"
        f"Machine: {platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}.\n"
        f"Versions: {versions}.\n"
    )


def version_of(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def table(rows):
    lines = ["| what | ours | peer | ratio | target | more |", "|---|--:|--:|--:|---|---|"]
    for row in rows:
        extra = {
            key: value
            for key, value in row.items()
            if key not in ("what", "ours", "peer", "ratio", "target") and value is not None
        }
        more = "; ".join(f"{key.replace('_', ' ')}: {number(value)}" for key, value in extra.items())
        cells = [
            row["what"],
            seconds(row["ours"]),
            seconds(row.get("peer")),
            ratio(row.get("ratio")),
            row.get("target", ""),
            more,
        ]
        lines.append("| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |")
    return "\n".join(lines)


def seconds(value):
    if not isinstance(value, (int, float)):
        return "" if value is None else value
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def ratio(value):
    return (
        f"{value:,.0f}x"
        if isinstance(value, (int, float)) and value >= 10
        else (f"{value:.2g}x" if isinstance(value, (int, float)) else "")
    )


def number(value):
    return f"{value:.3g}" if isinstance(value, float) else value


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(sys.argv[1:])
