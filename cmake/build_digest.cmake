# cmake -DFOLDER=... -DLIST=... -DOUTPUT=... -P build_digest.cmake: writes a source file that
# defines tutti::build(). This function returns a short digest of the files that LIST names.
file(STRINGS ${LIST} files)
set(digests "")
foreach(file IN LISTS files)
  file(SHA256 ${FOLDER}/${file} digest)
  string(APPEND digests "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
file(WRITE ${OUTPUT} "#include <tutti/version.h>

namespace tutti {

std::string_view build() { return \"${digest}\"; }

}  // namespace tutti
")
