# `cmake --install build/release --prefix DIR`: the programs side by side, what they open at run time relative to themselves
# (so lib/neuroshard, whatever the system calls its library folder), and what a desktop and a shell need to know of them.
# The components of the same names become packages: NeuroshardPackage.cmake. Components that only a package has are
# EXCLUDE_FROM_ALL.
if(NS_FUZZ)
  return()
endif()

# ns_install_made(component program …): what the programs themselves know, made when it is installed: manual pages, completions.
function(ns_install_made component)
  install(CODE "set(NS_SOURCE \"${PROJECT_SOURCE_DIR}\")
    set(NS_BIN \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\")
    set(NS_DATA \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share\")
    set(NS_PROGRAMS ${ARGN})
    include(\"${PROJECT_SOURCE_DIR}/installers/made_files.cmake\")" COMPONENT ${component})
endfunction()

install(TARGETS neuroshardd RUNTIME DESTINATION bin COMPONENT core)
install(TARGETS neuroshard_network LIBRARY DESTINATION lib/neuroshard COMPONENT core)
if(NS_COMPUTE_MODULE)
  install(TARGETS compute_cpu LIBRARY DESTINATION lib/neuroshard COMPONENT core)
endif()
# Where programs look for it, in the build as in an installation. With the prefix ~/.local, share/neuroshard is the user's data
# directory, so the folder has another name.
file(COPY resources/sample-text DESTINATION "${CMAKE_BINARY_DIR}/share/neuroshardd")
install(DIRECTORY resources/sample-text DESTINATION share/neuroshardd COMPONENT core)
ns_install_made(core neuroshardd)
if(TARGET neuroshard)
  install(TARGETS neuroshard RUNTIME DESTINATION bin COMPONENT app)
  install(FILES resources/desktop/neuroshard.desktop DESTINATION share/applications COMPONENT app)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/package/neuroshard.metainfo.xml" DESTINATION share/metainfo COMPONENT app)
  install(FILES resources/icons/neuroshard.svg DESTINATION share/icons/hicolor/scalable/apps COMPONENT app)
  ns_install_made(app neuroshard)
endif()
install(FILES LICENSE DESTINATION share/doc/neuroshard COMPONENT licence)
include(NeuroshardPackage)
