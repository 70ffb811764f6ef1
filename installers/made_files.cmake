# Files that are made at installation, so that they always say what the installed programs do. Run by `cmake --install` and
# cpack with NS_SOURCE (the source tree), NS_BIN (folder of the programs), NS_DATA (share/ of the target) and NS_PROGRAMS.

# make_file(OUT COMMAND …): what the command prints becomes the file. It is listed in install_manifest.txt like the other files,
# without $DESTDIR.
function(make_file out)
  get_filename_component(folder "${out}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND ${ARGN} OUTPUT_FILE "${out}" RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "can't make ${out}: \"${command}\" ended with ${status}")
  endif()
  file(CHMOD "${out}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  message(STATUS "Made: ${out}")
  string(LENGTH "$ENV{DESTDIR}" skipped)
  string(SUBSTRING "${out}" ${skipped} -1 installed)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${installed}")
  set(CMAKE_INSTALL_MANIFEST_FILES "${CMAKE_INSTALL_MANIFEST_FILES}" PARENT_SCOPE)
endfunction()

foreach(program IN LISTS NS_PROGRAMS)
  make_file("${NS_DATA}/man/man1/${program}.1" sh "${NS_SOURCE}/installers/manual.sh" "${NS_BIN}/${program}")
endforeach()

if(NS_PROGRAMS STREQUAL "neuroshardd")
  make_file("${NS_DATA}/bash-completion/completions/neuroshardd" "${NS_BIN}/neuroshardd" completion bash)
  make_file("${NS_DATA}/zsh/vendor-completions/_neuroshardd" "${NS_BIN}/neuroshardd" completion zsh)
  make_file("${NS_DATA}/fish/vendor_completions.d/neuroshardd.fish" "${NS_BIN}/neuroshardd" completion fish)
endif()
if(NS_PROGRAMS STREQUAL "neuroshard")
  find_program(NS_RSVG rsvg-convert)
  if(NS_RSVG)
    foreach(size 16 22 24 32 48 64 128 256 512)
      make_file("${NS_DATA}/icons/hicolor/${size}x${size}/apps/neuroshard.png"
        "${NS_RSVG}" --width ${size} --height ${size} "${NS_SOURCE}/resources/icons/neuroshard.svg")
    endforeach()
  else()
    message(STATUS "rsvg-convert is missing: only the scalable icon is installed")
  endif()
endif()
