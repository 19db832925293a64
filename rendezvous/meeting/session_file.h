#pragma once

#include <string>

#include <tutti/deadline.h>
#include <tutti/secret.h>
#include <tutti/status.h>

#include "rendezvous/meeting/announcer.h"

namespace tutti::file {

// A `SessionFile` announces the session in a file, which users name as `file:///path`. The file is never
// locked, since shared file systems may grant one lock to two hosts. A rename puts the complete file in
// place, so that nobody reads half a file.
class SessionFile final : public Announcer {
 public:
  explicit SessionFile(std::string path);
  // Removes the file that this object has written, unless another file has replaced it.
  ~SessionFile() override;
  SessionFile(const SessionFile&) = delete;
  SessionFile& operator=(const SessionFile&) = delete;

  // Writes the file, with mode 0600. Replaces a file at the path only if it is ours (see
  // `read`). Otherwise fails with `invalid_argument`, which names the path and says why the file cannot be
  // written, or what else is at the path.
  Status publish(const Secret& text, Deadline deadline) override;
  // Fails with `unreachable` if there is no file. Fails with `invalid_argument` if waiting does not help: the
  // path is a folder, the folder of the file does not exist, or the file is not ours. A file is ours if it is
  // a regular file, not a link, and belongs to this user or to root. If it is not empty, it must also begin
  // like a session, and only its owner may have rights to it. So another user cannot lead us to a foreign
  // store, and files with other data are kept.
  Result<Secret> read(Deadline deadline) override;
  // Publishes the file again if it has vanished. A rank of an earlier run may end late, and may then remove
  // our file instead of its own file.
  void restore_if_missing() override;

 private:
  const std::string path_;
  const int owner_;   // this process's id, since a forked child must not remove the file
  Secret published_;  // empty if this object has written no file
};

}  // namespace tutti::file
