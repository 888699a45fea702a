# docs/semantics.md must be what the declarations of the ops give now.
execute_process(COMMAND ${DOCGEN} md ${OPS_DEF} ${OUT} RESULT_VARIABLE failed)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${OUT} ${PAGE} RESULT_VARIABLE differs)
if(failed OR differs)
  message(FATAL_ERROR "docs/semantics.md is out of date: cmake --build BUILD --target semantics, then commit it")
endif()
