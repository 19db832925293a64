# tutti_messages(TARGET NAMES...) adds the messages of each NAME.proto in the current folder to the target. The target's
# sources include them as <FOLDER/NAME.pb.h>. The generated headers are in the build folder.
function(tutti_messages target)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${generated})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(name IN LISTS ARGN)
    set(messages ${generated}/${folder}/${name}.pb)
    add_custom_command(
      OUTPUT ${messages}.cc ${messages}.h
      COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${generated}
              ${CMAKE_CURRENT_SOURCE_DIR}/${name}.proto
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.proto
      VERBATIM)
    # tutti's compiler warnings do not apply to generated code.
    set_source_files_properties(${messages}.cc PROPERTIES COMPILE_OPTIONS -w)
    target_sources(${target} PRIVATE ${messages}.cc)
  endforeach()
  target_include_directories(${target} SYSTEM PRIVATE ${generated})
  target_link_libraries(${target} PRIVATE protobuf::libprotobuf-lite)
endfunction()
