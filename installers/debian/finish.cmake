# What Debian wants of a package beyond the files of an installation. Run by cpack with NS_CHANGELOG, the path of
# changelog.Debian.gz, after the other files of its component.
get_filename_component(folder "${NS_CHANGELOG}" DIRECTORY)
get_filename_component(package "${folder}" NAME)
get_filename_component(share "${folder}/../.." ABSOLUTE)

# One entry: the history is in the repository.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${folder}/changelog.Debian" "${package} ($ENV{NS_PACKAGE_VERSION}-1) stable; urgency=medium

  * Built from the commit that the version names.

 -- NeuroShard maintainers <maintainers@neuroshard.example>  ${date}
")
file(GLOB pages "${share}/man/man1/*.1")
execute_process(COMMAND gzip -9nf "${folder}/changelog.Debian" ${pages} RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "gzip ended with ${status}")
endif()
file(GLOB made "${folder}/*.gz" "${share}/man/man1/*.gz")
file(CHMOD ${made} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
