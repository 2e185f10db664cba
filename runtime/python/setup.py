# SPDX-License-Identifier: Apache-2.0
"""Puts the plugin into the package: the one that TESSERA_PREBUILT names, else one that
make builds from this tree."""

import os
import pathlib
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
NAME = "pjrt_plugin_tessera.so"


class BuildWithPlugin(build_py):
    def run(self):
        super().run()
        built = os.environ.get("TESSERA_PREBUILT")
        if not built:
            top = HERE.parents[1]
            subprocess.run(["make", "-C", top, f"build/opt/{NAME}"], check=True)
            built = top / "build/opt" / NAME
        target = pathlib.Path(self.build_lib) / "tessera_pjrt"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, target / NAME)


setup(cmdclass={"build_py": BuildWithPlugin})
