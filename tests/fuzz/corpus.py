#!/usr/bin/env python3
"""Makes the seeds of the fuzz targets: `corpus.py OUT` fills OUT/decode, OUT/twins, OUT/import and OUT/sql.

Snapshots come from fixtures/, whole where they are small, and cut down to a few rows and written again by Python's pickle
in every protocol; queries come from sql/ and tests/slt.
"""

import json
import pathlib
import pickle
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# libFuzzer tries a few hundred inputs of this size a second, and small ones reach most of the code.
LARGEST = 16_000
# Options that the targets read from the first byte: none, salvage, and all filters at once.
CHOICES = (0, 1, 15)


def cut(snapshot):
    """The snapshot with a few rows of everything."""
    if isinstance(snapshot, list):
        return snapshot[:2]
    small = dict(snapshot)
    small["segments"] = [dict(segment, blocks=segment["blocks"][:3]) for segment in snapshot["segments"][:2]]
    small["device_traces"] = [events[:4] + events[-4:] for events in snapshot["device_traces"][:2]]
    for name in ("host_segments", "host_traces", "external_annotations"):
        if name in small:
            small[name] = small[name][:3]
    return small


def snapshots():
    for path in sorted((ROOT / "fixtures").glob("*.pickle")):
        data = path.read_bytes()
        if len(data) <= LARGEST:
            yield path.stem, data
        # Written by npusnap itself, so that loading it is safe.
        small = cut(pickle.loads(data))
        for protocol in range(6):
            yield f"{path.stem}-{protocol}", pickle.dumps(small, protocol)
        yield f"{path.stem}-json", json.dumps(small, default=list).encode()


def queries():
    for path in sorted((ROOT / "sql").glob("*.sql")):
        yield path.stem, path.read_text()
    for path in sorted((ROOT / "tests" / "slt").glob("*.slt")):
        for number, record in enumerate(path.read_text().split("\n\n")):
            lines = record.strip().splitlines()
            start = next((at for at, line in enumerate(lines) if line.split(" ")[0] == "query"), None)
            if start is not None:
                query = [line for line in lines[start + 1 :] if line != "----"]
                end = lines[start + 1 :].index("----") if "----" in lines else len(query)
                yield f"{path.stem}-{number}", "\n".join(lines[start + 1 :][:end])


def main():
    out = pathlib.Path(sys.argv[1])
    for target in ("decode", "twins", "import", "sql"):
        (out / target).mkdir(parents=True, exist_ok=True)
    for name, data in snapshots():
        (out / "decode" / name).write_bytes(data)
        for choice in CHOICES:
            (out / "twins" / f"{name}-{choice}").write_bytes(bytes([choice]) + data)
        for container in range(5):
            choice = CHOICES[container % len(CHOICES)]
            (out / "import" / f"{name}-{choice}-{container}").write_bytes(bytes([choice, container]) + data)
    for name, text in queries():
        (out / "sql" / name).write_text(text)


if __name__ == "__main__":
    main()
