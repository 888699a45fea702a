// tenon_docgen FORM OPS_DEF OUT: FORM `inc` writes the table behind `tenon ops`, `md` writes docs/semantics.md.
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tools/docgen/op_doc.h"

int main(int argc, char** argv) {
  using namespace tenon::docgen;
  const bool markdown = argc == 4 && std::strcmp(argv[1], "md") == 0;
  if (argc != 4 || (!markdown && std::strcmp(argv[1], "inc") != 0)) {
    std::cerr << "usage: tenon_docgen inc|md OPS_DEF OUT\n";
    return 2;
  }
  std::ifstream in(argv[2]);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) {
    std::cerr << "tenon_docgen: cannot read " << argv[2] << "\n";
    return 1;
  }
  const Notes notes = read_notes(text.str());
  const std::vector<OpDoc> docs = gather(notes);
  std::ofstream out(argv[3]);
  out << (markdown ? as_markdown(docs, notes) : as_include(docs));
  out.close();
  if (!out) std::cerr << "tenon_docgen: cannot write " << argv[3] << "\n";
  return out ? 0 : 1;
}
