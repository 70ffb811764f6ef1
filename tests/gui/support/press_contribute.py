#!/usr/bin/python3
"""Presses the app's Contribute switch as a screen reader would, through the accessibility bus:

    press_contribute.py on|off

Waits until the switch is there, can be used and is the other way, presses it, and waits until the bus says that it has
turned. Exits with 1 and what it saw when that does not happen."""
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

PATIENCE_S = 40
LOOK_S = 0.2


def walk(node, depth=0):
    yield node, depth
    for i in range(node.get_child_count()):
        child = node.get_child_at_index(i)
        if child is not None:
            yield from walk(child, depth + 1)


def find(seen):
    desktop = Atspi.get_desktop(0)
    for i in range(desktop.get_child_count()):
        app = desktop.get_child_at_index(i)
        if app is None or "neuroshard" not in (app.get_name() or "").lower():
            continue
        app.set_cache_mask(Atspi.Cache.NONE)  # nothing here handles the events that would keep a cache fresh
        for node, depth in walk(app):
            role, name = node.get_role(), node.get_name() or ""
            seen.append("  " * depth + f"{node.get_role_name()}: {name}")
            if role == Atspi.Role.CHECK_BOX and name == "Contribute":
                return node
    return None


def state_of(node):
    states = node.get_state_set()
    return states.contains(Atspi.StateType.ENABLED), states.contains(Atspi.StateType.CHECKED)


def actions_of(node):
    action = node.get_action_iface()
    return [Atspi.Action.get_action_name(action, i).lower() for i in range(Atspi.Action.get_n_actions(action))]


def main():
    wanted = {"on": True, "off": False}[sys.argv[1]]
    end = time.monotonic() + PATIENCE_S
    saw = "no app on the bus"
    pressed = False
    node = None
    while time.monotonic() < end:
        try:
            if node is None:
                seen = []
                node = find(seen)
                saw = "no switch named Contribute in:\n" + "\n".join(seen)
            if node is not None:
                enabled, checked = state_of(node)
                saw = f"the switch: enabled {enabled}, checked {checked}, pressed {pressed}, offers {actions_of(node)}"
                if pressed and checked == wanted:
                    print("pressed")
                    return 0
                if enabled and checked != wanted and not pressed:
                    pressed = Atspi.Action.do_action(node.get_action_iface(), actions_of(node).index("toggle"))
                    continue
        except Exception as error:  # the window is being made, or the app is busy: look again
            saw = f"{saw}\n{type(error).__name__}: {error}"
            node = None
        time.sleep(LOOK_S)
    print(saw)
    return 1


if __name__ == "__main__":
    sys.exit(main())
