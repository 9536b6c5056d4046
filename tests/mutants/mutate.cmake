# Writes copies of sources in which mistakes can be switched on, and a table of them. Nothing in the sources knows of it:
#   cmake -D SOURCE=<root of the project> -D OUT=<folder> -P tests/mutants/table.cmake
# A mistake is one text of one file that becomes another; MUTATED in it is true while the mistake is on. A text that is not
# there exactly once ends the build: a mutant that no longer changes anything must not look like one that was caught.
cmake_minimum_required(VERSION 3.25)

set(berth_mutants "")
set(berth_mutant_count 0)
set(berth_files "")

# mutant(name rule [survives]): begins one. `rule` is for people; so is why it survives, if it is known to.
function(mutant name rule)
  math(EXPR number "${berth_mutant_count} + 1")
  set(berth_mutant_count ${number} PARENT_SCOPE)
  string(APPEND berth_mutants "{\"${name}\", \"${rule}\", \"${ARGN}\"},\n")
  set(berth_mutants "${berth_mutants}" PARENT_SCOPE)
endfunction()

# copied(file): it is written although no mutant may have changed it
function(copied file)
  string(MAKE_C_IDENTIFIER "${file}" key)
  if(NOT DEFINED text_${key})
    file(READ "${SOURCE}/${file}" text)
    set(text_${key} "${text}" PARENT_SCOPE)
    set(berth_files "${berth_files}" "${file}" PARENT_SCOPE)
  endif()
endfunction()

# becomes(file old new): a part of the mutant that was begun last
function(becomes file old new)
  string(MAKE_C_IDENTIFIER "${file}" key)
  if(NOT DEFINED text_${key})
    file(READ "${SOURCE}/${file}" text_${key})
    set(berth_files "${berth_files}" "${file}" PARENT_SCOPE)
  endif()
  string(FIND "${text_${key}}" "${old}" first)
  string(FIND "${text_${key}}" "${old}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "mutant ${berth_mutant_count}: not once in ${file}:\n${old}")
  endif()
  string(REPLACE "MUTATED" "(::berth::test::active_mutant == ${berth_mutant_count})" new "${new}")
  string(REPLACE "${old}" "${new}" text "${text_${key}}")
  set(text_${key} "${text}" PARENT_SCOPE)
endfunction()

function(write_if_changed path text)
  if(EXISTS "${path}")
    file(READ "${path}" before)
    if(before STREQUAL text)
      return()
    endif()
  endif()
  file(WRITE "${path}" "${text}")
endfunction()

function(write_mutants)
  foreach(file ${berth_files})
    string(MAKE_C_IDENTIFIER "${file}" key)
    write_if_changed("${OUT}/${file}" "#include \"support/mutant.h\"\n${text_${key}}")
  endforeach()
  write_if_changed("${OUT}/mutant_table.inc" "${berth_mutants}")
endfunction()
