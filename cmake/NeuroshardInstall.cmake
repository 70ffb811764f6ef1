# `cmake --install build/release --prefix DIR`: the programs side by side, what they open at run time relative to themselves
# (so lib/neuroshard, whatever the system calls its library folder), and what a desktop needs to know of the app.
if(NS_FUZZ)
  return()
endif()
install(TARGETS neuroshardd RUNTIME DESTINATION bin)
install(TARGETS neuroshard_network LIBRARY DESTINATION lib/neuroshard)
if(NS_COMPUTE_MODULE)
  install(TARGETS compute_cpu LIBRARY DESTINATION lib/neuroshard)
endif()
if(TARGET neuroshard)
  install(TARGETS neuroshard RUNTIME DESTINATION bin)
  install(FILES resources/desktop/neuroshard.desktop DESTINATION share/applications)
  install(FILES resources/icons/neuroshard.svg DESTINATION share/icons/hicolor/scalable/apps)
endif()
# Where programs look for it, in the build as in an installation.
file(COPY resources/sample-text DESTINATION "${CMAKE_BINARY_DIR}/share/neuroshard")
install(DIRECTORY resources/sample-text DESTINATION share/neuroshard)
install(FILES LICENSE DESTINATION share/doc/neuroshard)
