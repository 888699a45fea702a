# cmake -DFOLDER=docs/errors -DOUT=pages.inc -P embed.cmake: the pages as C++ raw strings, one element a file.
file(GLOB pages ${FOLDER}/TN-*.md)
list(SORT pages)
set(text "")
foreach(page ${pages})
  file(READ ${page} content)
  string(APPEND text "R\"TENONPAGE(${content})TENONPAGE\",\n")
endforeach()
file(WRITE ${OUT} "${text}")
