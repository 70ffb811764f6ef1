#!/usr/bin/env python3
"""Holds the English catalogue against the sources:    translations.py SOURCE_TREE LUPDATE

The catalogue has English plurals only. A plural without an entry in the class that shows it reads "3 member(s)" in the window.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml


def plurals(catalogue):
    """(class, text) of every plural, and those without a translation."""
    found, open_ones = set(), set()
    for context in xml.parse(catalogue).getroot().iter("context"):
        for message in context.iter("message"):
            key = (context.findtext("name"), message.findtext("source"))
            found.add(key)
            if message.find("translation").get("type") == "unfinished":
                open_ones.add(key)
    return found, open_ones


def main():
    source, lupdate = pathlib.Path(sys.argv[1]), sys.argv[2]
    catalogue = source / "resources/translations/neuroshard_en.ts"
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder) / catalogue.name
        shutil.copy(catalogue, fresh)
        subprocess.run([lupdate, "-silent", "-pluralonly", "-locations", "none", "-no-obsolete", "-I", source, source / "ui",
                        source / "app/gui", "-source-language", "en", "-target-language", "en", "-ts", fresh],
                       check=True, capture_output=True)
        needed, _ = plurals(fresh)
    present, unfinished = plurals(catalogue)
    faults = [f"no entry for {text!r} of {name}" for name, text in sorted(needed - present)]
    faults += [f"nothing shows {text!r} of {name}" for name, text in sorted(present - needed)]
    faults += [f"no English plural of {text!r} of {name}" for name, text in sorted(unfinished & present)]
    if not needed:
        faults.append("lupdate found no plural at all")
    if faults:
        print("\n".join(f"{catalogue.relative_to(source)}: {fault}" for fault in faults))
        sys.exit("run: cmake --build build/release --target update_translations; then fill in what is unfinished")
    print(f"{len(needed)} plurals")


if __name__ == "__main__":
    main()
