# Packages: `cd build/release && cpack -G DEB` (Debian, Ubuntu) and `cpack -G TGZ` (runs from any folder). installers/package.sh
# does both. CPack reads installers/cpack_version.cmake first: the version and the time of the commit, which every file gets.
set(NS_PACKAGE_CONTACT "NeuroShard maintainers <maintainers@neuroshard.example>" CACHE STRING "Maintainer named in the packages")
set(NS_HOMEPAGE "" CACHE STRING "Address of the project's site, for packages and software centres; empty = none")

set(made "${CMAKE_CURRENT_BINARY_DIR}/package")
# Software centres fetch pictures from the site; they take no file of the package.
set(NS_METAINFO_LINKS "")
if(NS_HOMEPAGE)
  set(NS_METAINFO_LINKS "  <url type=\"homepage\">${NS_HOMEPAGE}</url>
  <screenshots>
    <screenshot type=\"default\">
      <caption>The loss falls on the overview page</caption>
      <image>${NS_HOMEPAGE}/docs/images/overview.png</image>
    </screenshot>
  </screenshots>
")
endif()
# The same file has what is new in each version: the app shows it after an upgrade.
file(READ resources/desktop/neuroshard.metainfo.xml.in metainfo)
if(NOT metainfo MATCHES "<releases>[ \n]*<release version=\"${PROJECT_VERSION}\" date=\"[0-9-]+\">[ \n]*<description>")
  message(FATAL_ERROR "resources/desktop/neuroshard.metainfo.xml.in must say first what is new in version ${PROJECT_VERSION}")
endif()
configure_file(resources/desktop/neuroshard.metainfo.xml.in "${made}/neuroshard.metainfo.xml" @ONLY)
set(NS_PROGRAM /usr/bin/neuroshardd)
configure_file(resources/systemd/neuroshardd.service.in "${made}/system/neuroshardd.service" @ONLY)
configure_file(resources/systemd/neuroshardd.user.service.in "${made}/user/neuroshardd.service" @ONLY)
install(DIRECTORY "${made}/system" DESTINATION lib/systemd COMPONENT core_debian EXCLUDE_FROM_ALL)
install(DIRECTORY "${made}/user" DESTINATION lib/systemd COMPONENT core_debian EXCLUDE_FROM_ALL)
foreach(package neuroshardd neuroshard)
  set(component core_debian)
  if(package STREQUAL neuroshard)
    set(component app_debian)
  endif()
  install(FILES installers/debian/copyright DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES installers/debian/${package}.lintian-overrides DESTINATION share/lintian/overrides RENAME ${package}
    COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(CODE "set(NS_CHANGELOG \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/${package}/changelog.Debian.gz\")
    include(\"${PROJECT_SOURCE_DIR}/installers/debian/finish.cmake\")" COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
install(CODE "set(NS_SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(NS_BIN \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")
  set(NS_TARGET \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  include(\"${PROJECT_SOURCE_DIR}/installers/portable/readme.cmake\")" COMPONENT portable EXCLUDE_FROM_ALL)

# The archive is an AppDir as well: this and bin/ are all that an AppImage is made of.
install(PROGRAMS installers/portable/AppRun DESTINATION . COMPONENT portable EXCLUDE_FROM_ALL)
install(FILES resources/desktop/neuroshard.desktop resources/icons/neuroshard.svg DESTINATION . COMPONENT portable EXCLUDE_FROM_ALL)

set(CPACK_PACKAGE_NAME neuroshard)
set(CPACK_PACKAGE_VENDOR NeuroShard)
set(CPACK_PACKAGE_CONTACT "${NS_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_HOMEPAGE_URL "${NS_HOMEPAGE}")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/installers/cpack_folders.cmake")
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_SOURCE_DIR}/installers/cpack_version.cmake")
set(CPACK_NS_SOURCE "${PROJECT_SOURCE_DIR}")
set(CPACK_NS_VERSION "${PROJECT_VERSION}")
set(CPACK_NS_HAS_APP OFF)
if(TARGET neuroshard)
  set(CPACK_NS_HAS_APP ON)
endif()

# Two packages. apt resolves what dpkg-shlibdeps finds in all programs and modules of each.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_NEUROSHARDD_PACKAGE_NAME neuroshardd)
set(CPACK_DEBIAN_NEUROSHARDD_PACKAGE_DEPENDS "adduser")
# Opened by name at run time, so dpkg-shlibdeps does not see it: the desktop's keychain.
set(CPACK_DEBIAN_NEUROSHARDD_PACKAGE_RECOMMENDS "libsecret-1-0")
set(CPACK_DEBIAN_NEUROSHARDD_DESCRIPTION "language model training on ordinary computers (core)
NeuroShard trains an open language model on ordinary computers. Many
people's computers train one model together, or one computer trains alone
from its own text.

This package has the core, which works without a display: the program
neuroshardd, its modules, and services for systemd.")
set(CPACK_DEBIAN_NEUROSHARD_PACKAGE_NAME neuroshard)
# Loaded by Qt at run time: pictures in SVG; input methods and themes of the desktop; Wayland. The font is the app's own look.
set(CPACK_DEBIAN_NEUROSHARD_PACKAGE_RECOMMENDS "fonts-inter, qt6-qpa-plugins, qt6-wayland")
set(CPACK_DEBIAN_NEUROSHARD_DESCRIPTION "language model training on ordinary computers (desktop app)
NeuroShard trains an open language model on ordinary computers. Many
people's computers train one model together, or one computer trains alone
from its own text.

This package has the desktop app. It starts the core in the background,
controls it and shows what it does: loss, speed, limits, checkpoints. A
playground lets the model write text.")
set(CPACK_DEBIAN_NEUROSHARDD_PACKAGE_CONTROL_EXTRA "${PROJECT_SOURCE_DIR}/installers/debian/neuroshardd/postinst;${PROJECT_SOURCE_DIR}/installers/debian/neuroshardd/prerm;${PROJECT_SOURCE_DIR}/installers/debian/neuroshardd/postrm")

include(CPack)
cpack_add_component_group(neuroshardd)
cpack_add_component_group(neuroshard)
foreach(component core core_debian)
  cpack_add_component(${component} GROUP neuroshardd)
endforeach()
foreach(component app app_debian)
  cpack_add_component(${component} GROUP neuroshard)
endforeach()
