# SPDX-License-Identifier: Apache-2.0
"""encore as a Conan package, from the tree that this file is in.

    conan create packaging/conan
    conan create packaging/conan -o "encore/*:shared=True" -o "encore/*:openmp=False"

Programs get the package's own find_package(encore), with the targets encore::encore and
encore::text, whatever the options. With system_dependencies Highway, nlohmann/json and, for the
command line, CLI11 are those that CMake finds on the machine, and none is downloaded.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

required_conan_version = ">=2.0"


class EncoreConan(ConanFile):
    name = "encore"
    description = "Transformer encoders on CPUs: texts and pictures to vectors, scores and labels"
    license = "Apache-2.0"
    topics = ("embeddings", "transformers", "simd", "inference")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "openmp": [True, False],
        "command": [True, False],
        "system_dependencies": [True, False],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "openmp": True,
        "command": False,
        "system_dependencies": False,
    }
    implements = ["auto_shared_fpic"]

    @property
    def _root(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        with open(os.path.join(self._root, "include", "encore", "version.h")) as file:
            parts = re.findall(r"#define ENCORE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read())
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "engine/*", "include/*", "reference/*",
                        "tools/*", "bench/measure/*"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        if not self.options.system_dependencies:
            self.requires("highway/[>=1.2.0 <2]")
            self.requires("nlohmann_json/[>=3.7.3 <4]", visible=False)
            if self.options.command:
                self.requires("cli11/[>=2.1.2 <3]", visible=False)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ENCORE_OPENMP"] = bool(self.options.openmp)
        toolchain.cache_variables["ENCORE_BUILD_TOOLS"] = bool(self.options.command)
        for part in ("TESTS", "BENCHMARKS", "SERVER", "IMAGES"):
            toolchain.cache_variables[f"ENCORE_BUILD_{part}"] = False
        toolchain.cache_variables["ENCORE_FETCH_DEPENDENCIES"] = False
        toolchain.generate()
        if not self.options.system_dependencies:
            from conan.tools.cmake import CMakeDeps

            dependencies = CMakeDeps(self)
            dependencies.set_property("highway", "cmake_file_name", "hwy")
            dependencies.set_property("highway::hwy", "cmake_target_name", "hwy::hwy")
            dependencies.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The installed configuration for CMake knows what the libraries need.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "encore")]
        self.cpp_info.libs = ["encore_text", "encore"]
