"""Asks the questions of evals.json and compares the answers, exactly.

    run.py --npusnap PATH --fixtures DIR               the reference command of each question, against its answer
    run.py --answers FILE                              an agent's answers, a JSON object of id to answer
    run.py --list                                      the questions alone, to be asked

Answers were worked out from the snapshots with Python's own pickle, and from the simulator's truth, not with npusnap.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, List


def load() -> List[dict]:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "evals.json"), encoding="utf-8") as file:
        return json.load(file)


def pick(value: Any, path: List[Any]) -> Any:
    """The value at a path; `*` takes all items of a list."""
    for position, key in enumerate(path):
        if key == "*":
            return [pick(item, path[position + 1 :]) for item in value]
        value = value[key]
    return value


def ask(question: dict, npusnap: str, fixtures: str, folder: str) -> Any:
    command = [npusnap]
    for word in question["command"]:
        command.append(os.path.join(folder, word) if word.endswith(".pickle") else word)
    for name in question["snapshots"]:
        target = os.path.join(folder, name)
        if not os.path.exists(target):
            with open(os.path.join(fixtures, name), "rb") as source, open(target, "wb") as copy:
                copy.write(source.read())
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return pick(json.loads(done.stdout), question["pick"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npusnap", default="npusnap")
    parser.add_argument("--fixtures", default="fixtures")
    parser.add_argument("--answers")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    questions = load()
    if options.list:
        print(json.dumps([{key: q[key] for key in ("id", "question", "snapshots", "form")} for q in questions], ensure_ascii=False, indent=1))
        return 0
    if not options.answers and not os.path.isdir(options.fixtures):
        parser.error(
            "there is no folder `{}`: --fixtures takes the folder of that name in npusnap's repository, "
            "whose snapshots the questions are about".format(options.fixtures)
        )
    given = None
    if options.answers:
        with open(options.answers, encoding="utf-8") as file:
            given = json.load(file)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for question in questions:
            try:
                if given is not None:
                    answer = given.get(question["id"])
                else:
                    answer = ask(question, options.npusnap, options.fixtures, folder)
            except Exception as error:  # noqa: BLE001
                answer = "failed: {}".format(error)
            if answer != question["answer"]:
                wrong += 1
                print("{}: expected {!r}, got {!r}".format(question["id"], question["answer"], answer))
    print("{} of {} answers are right".format(len(questions) - wrong, len(questions)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
