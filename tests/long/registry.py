"""The list of targets. A target registers itself with @target(NAME, TEXT); the text is one line of --list."""
TARGETS = {}


def target(name, text):
    def register(function):
        TARGETS[name] = (function, text)
        return function
    return register
