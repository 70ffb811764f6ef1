# Switches of the build, set by the presets in CMakePresets.json.
option(NS_WERROR "Treat warnings as errors" OFF)
option(NS_BUILD_TESTS "Build the Qt Test programs" ON)
option(NS_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(NS_COMPUTE_MODULE "Build the LibTorch compute module" ON)
option(NS_BUILD_APP "Build the desktop app, where Qt is found" ON)
option(NS_UNITY "Compile several sources at a time: a build from nothing takes half the time, one changed source a little longer" OFF)
set(NS_RELEASES_URL "" CACHE STRING "https address of the folder with SHA256SUMS of releases, where the app may look; empty = it cannot")
set(NS_RELEASES_KEY "" CACHE STRING "Public key of minisign (base64, begins with RW) that signs that file")
string(LENGTH "${NS_RELEASES_KEY}" key_length)
if(NS_RELEASES_URL AND (NOT NS_RELEASES_URL MATCHES "^(https://|http://127\\.0\\.0\\.1[:/])" OR NOT NS_RELEASES_KEY MATCHES "^RW[A-Za-z0-9+/]+$"
                        OR NOT key_length EQUAL 56))
  message(FATAL_ERROR "NS_RELEASES_URL must begin with https:// and needs NS_RELEASES_KEY, the second line of minisign.pub")
endif()
set(NS_SANITIZE "" CACHE STRING "Comma-separated sanitizers, e.g. address,undefined")

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(NS_MODULE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/neuroshard")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(NS_CCACHE ccache)
if(NS_CCACHE)
  # Units that use a precompiled header are kept by ccache only when told that macros in it are of no matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${NS_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${NS_CCACHE}")
endif()

# One interface target carries the flags; every target of ours links it.
add_library(ns_options INTERFACE)
# The same bits on every machine: no contraction, no fast-math (docs/protocol/outer-step.md). Kernels that may
# contract say so in their own folder.
target_compile_options(ns_options INTERFACE -ffp-contract=off)
# Failed checks name their files as seen from the source folder: two folders give the same packages.
target_compile_options(ns_options INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
target_compile_definitions(ns_options INTERFACE QT_NO_KEYWORDS)
if(NS_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(ns_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # lets ccache see the header
endif()

# Warnings stand apart so that units which see third-party headers with warnings of their own can leave them out.
add_library(ns_warnings INTERFACE)
target_compile_options(ns_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
                                             -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of GCC 12 on std::string and std::variant (GCC bugs 105329, 105562).
  target_compile_options(ns_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
  if(NS_UNITY)
    # GCC inlines more in grouped sources and then warns of std::string's own code (GCC bug 105651). Builds without groups, such as
    # those of the preset dev, keep these warnings.
    target_compile_options(ns_warnings INTERFACE -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
  endif()
endif()
if(NS_WERROR)
  target_compile_options(ns_warnings INTERFACE -Werror)
endif()

if(NS_SANITIZE)
  target_compile_options(ns_options INTERFACE -fsanitize=${NS_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(ns_options INTERFACE -fsanitize=${NS_SANITIZE})
endif()
if(NS_FUZZ)
  # Undefined behaviour ends the program: libFuzzer counts only what does.
  target_compile_options(ns_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                                              -fno-omit-frame-pointer)
  target_link_options(ns_options INTERFACE -fsanitize=address,undefined)
endif()
