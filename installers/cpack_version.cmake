# Read by cpack before it packs. The version says which commit is in the package, and all files get the time of that commit, so
# that the same build gives the same package whoever packs it, and when. Environment: NS_PACKAGE_VERSION and SOURCE_DATE_EPOCH
# override what git says.
set(ENV{LC_ALL} C)
set(ENV{TZ} UTC)

# git_says(VARIABLE ARGUMENT …): its output, or an empty text outside of a checkout.
function(git_says variable)
  execute_process(COMMAND git -C "${CPACK_NS_SOURCE}" ${ARGN} OUTPUT_VARIABLE said RESULT_VARIABLE status ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(said "")
  endif()
  set(${variable} "${said}" PARENT_SCOPE)
endfunction()

if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  git_says(seconds log -1 --format=%ct)
  if(NOT seconds)
    # Without history: this file is as old as the sources.
    file(TIMESTAMP "${CPACK_NS_SOURCE}/CMakeLists.txt" seconds "%s" UTC)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} "${seconds}")
endif()

# 0.1.0 for its tag, else 0.1.0+git202611250844.b5d1080: later commits are newer, and older than the next release.
set(version "$ENV{NS_PACKAGE_VERSION}")
if(NOT version)
  set(version "${CPACK_NS_VERSION}")
  git_says(tag describe --exact-match --tags HEAD)
  git_says(commit log -1 --format=%h --abbrev=7)
  if(commit AND NOT tag STREQUAL "v${version}")
    string(TIMESTAMP time "%Y%m%d%H%M" UTC)  # of SOURCE_DATE_EPOCH
    string(APPEND version "+git${time}.${commit}")
  endif()
endif()
set(ENV{NS_PACKAGE_VERSION} "${version}")
set(CPACK_PACKAGE_VERSION "${version}")
set(CPACK_DEBIAN_PACKAGE_VERSION "${version}")
set(CPACK_PACKAGE_FILE_NAME "neuroshard-${version}-linux-${CMAKE_SYSTEM_PROCESSOR}")

set(CPACK_COMPONENTS_ALL core)
if(CPACK_NS_HAS_APP)
  list(APPEND CPACK_COMPONENTS_ALL app)
endif()
if(CPACK_GENERATOR STREQUAL "DEB")
  list(APPEND CPACK_COMPONENTS_ALL core_debian)
  if(CPACK_NS_HAS_APP)
    list(APPEND CPACK_COMPONENTS_ALL app_debian)
  endif()
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  # The app and the core of one build belong together.
  set(CPACK_DEBIAN_NEUROSHARD_PACKAGE_DEPENDS "neuroshardd (= ${version}-1)")
else()
  list(APPEND CPACK_COMPONENTS_ALL licence portable)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
  set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
endif()
