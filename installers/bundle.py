#!/usr/bin/env python3
"""Puts the libraries that an AppDir needs into it:   bundle.py APPDIR

APPDIR is the unpacked archive of installers/package.sh. Its programs then run on a Linux whose glibc is at least as new as the one of
this machine. lib/bundled gets the libraries, plugins/ what Qt opens by name, share/doc the copyright files of their packages.
Libraries that belong to a desktop's graphics driver, X server and fonts stay outside, as another version of them would not fit the
desktop. The list follows https://github.com/AppImageCommunity/pkg2appimage/blob/master/excludelist.
"""
import pathlib
import re
import shutil
import sys

from libraries import Libraries, is_program, must

OF_THE_DESKTOP = re.compile(
    r"(ld-linux-[\w-]+|lib(anl|c|dl|m|mvec|nss_\w+|pthread|resolv|rt|thread_db|util|stdc\+\+|gcc_s|"
    r"GL|EGL|GLdispatch|GLX|OpenGL|drm|gbm|glapi|X11|X11-xcb|xcb|xcb-dri2|xcb-dri3|wayland-client|"
    r"fontconfig|freetype|harfbuzz|asound|jack|com_err|expat|gmp|gpg-error|p11-kit|uuid|z))\.so(\.[0-9.]+)?")
# The app opens these by name. It starts without those that may be absent.
PLUGINS = ["platforms/libqxcb.so", "platforms/libqoffscreen.so", "imageformats/libqsvg.so", "iconengines/libqsvgicon.so",
           "tls/libqopensslbackend.so"]
PLUGINS_THAT_MAY_BE_ABSENT = ["platforms/libqwayland-*.so", "platforminputcontexts/*.so", "xcbglintegrations/*.so", "wayland-*/*.so",
                              "platformthemes/libqxdgdesktopportal.so"]

OWN_LIBRARIES = """The libraries in lib/bundled are those of Debian 12. share/doc has the copyright file of each package. Their sources are at
https://snapshot.debian.org, and the bill of materials (neuroshard-VERSION.spdx.json) names the versions.
"""


def fail(words):
    sys.exit(f"error: {words}")


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o644)


class Bundle:
    def __init__(self, appdir):
        self.appdir, self.system = appdir, Libraries()
        self.folder = appdir / "lib/bundled"
        self.libraries = {}  # name → path

    def programs(self):
        return [path for path in sorted(self.appdir.rglob("*")) if path.is_file() and not path.is_symlink() and is_program(path)]

    def copy_plugins(self):
        """Qt's plugins, and the translations of its own dialogs."""
        folder = pathlib.Path(must("qtpaths6", "--query", "QT_INSTALL_PLUGINS").strip())
        for pattern in PLUGINS + PLUGINS_THAT_MAY_BE_ABSENT:
            paths = sorted(folder.glob(pattern))
            if not paths and pattern in PLUGINS:
                fail(f"Qt's plugin {folder / pattern} is not installed: install its package")
            for path in paths:
                copy(path, self.appdir / "plugins" / path.relative_to(folder))
        translations = pathlib.Path(must("qtpaths6", "--query", "QT_INSTALL_TRANSLATIONS").strip())
        for path in sorted(translations.glob("qtbase_*.qm")):
            copy(path, self.appdir / "share/qt6/translations" / path.name)
        (self.appdir / "bin/qt.conf").write_text("[Paths]\nPrefix = ..\nPlugins = plugins\nTranslations = share/qt6/translations\n")

    def add(self, name, path):
        if name not in self.libraries and not OF_THE_DESKTOP.fullmatch(name):
            self.libraries[name] = path

    def copy_libraries(self):
        for file in self.programs():
            for name, path in self.system.loaded(file).items():
                self.add(name, path)
            for name in self.system.opened_by_name(file):
                path = self.system.find(name, file.name)
                self.add(name, path)
                for other, needed in self.system.loaded(pathlib.Path(path)).items():
                    self.add(other, needed)
        for name, path in self.libraries.items():
            copy(path, self.folder / name)

    def correct_readme(self):
        """README.txt of the archive names the packages that it needs."""
        readme = self.appdir / "README.txt"
        if readme.exists():
            text, count = re.subn(r"The libraries come from the system\..*?\n\n    apt-get [^\n]*\n", OWN_LIBRARIES, readme.read_text(), flags=re.DOTALL)
            if count != 1:
                fail("README.txt of the archive does not say where the libraries come from: change bundle.py with it")
            readme.write_text(text)

    def copy_copyright(self):
        """Returns the packages."""
        packages = sorted({self.system.owner(path) for path in self.libraries.values()} | {"qt6-base-dev"})
        for package in packages:
            copy(f"/usr/share/doc/{package}/copyright", self.appdir / "share/doc" / package / "copyright")
        return packages

    def let_loader_find(self):
        """Each file looks in the folder of libraries first."""
        for path in self.programs():
            up = "/".join([".."] * len(path.parent.relative_to(self.appdir).parts))
            must("patchelf", "--set-rpath", "$ORIGIN" if path.parent == self.folder else f"$ORIGIN/{up}/lib/bundled", path)

    def check(self):
        """The loader takes only what is bundled and what a desktop brings, which may need further libraries itself."""
        for path in self.programs():
            for name in self.system.needed(path):
                if not OF_THE_DESKTOP.fullmatch(name) and not (self.folder / name).exists():
                    fail(f"{path.relative_to(self.appdir)} needs {name}, which was not bundled")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    appdir = pathlib.Path(sys.argv[1]).resolve()
    if not (appdir / "AppRun").is_file():
        fail(f"{appdir} has no file AppRun, so it is no AppDir")
    bundle = Bundle(appdir)
    if (appdir / "bin/neuroshard").exists():
        bundle.copy_plugins()
    bundle.copy_libraries()
    packages = bundle.copy_copyright()
    bundle.correct_readme()
    bundle.let_loader_find()
    Bundle(appdir).check()
    size = sum(path.stat().st_size for path in bundle.folder.iterdir())
    print(f"bundled {len(bundle.libraries)} libraries of {len(packages)} packages, {size / 2**20:.0f} MiB")


main()
