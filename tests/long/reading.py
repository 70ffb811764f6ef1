"""Figures out of what programs print."""
import json
import re


def last_json(output):
    """The last line that is a JSON object."""
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise ValueError("no JSON object")


def all_json(output):
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def marked(word):
    """Lines that a program marks as figures: "SUMMARY …", "MEASURED …"."""
    return lambda output: {"lines": [line.split(word + " ", 1)[1] for line in output.splitlines() if word + " " in line]}


def table(output):
    return {"table": output.strip().splitlines()}


TOTALS = re.compile(r"^Totals: (\d+) passed, (\d+) failed, (\d+) skipped", re.MULTILINE)


def totals(output):
    """The totals of a Qt Test program, summed over its classes, and the figures that it marks."""
    rows = TOTALS.findall(output)
    if not rows:
        raise ValueError("no line of totals")
    passed, failed, skipped = (sum(int(row[i]) for row in rows) for i in range(3))
    return {"passed": passed, "failed": failed, "skipped": skipped, **marked("MEASURED")(output)}
