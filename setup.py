"""Map the floors of the house to packages: isoform is api/, isoform.X is the folder X."""

from setuptools import find_packages, setup

ROOMS = ("derivations", "impl", "properties")
FLOORS = {"isoform": "api", **{f"isoform.{room}": room for room in ROOMS}}
PACKAGES = [".".join(filter(None, (name, sub))) for name, folder in FLOORS.items() for sub in ("", *find_packages(folder))]

setup(package_dir=FLOORS, packages=PACKAGES)
