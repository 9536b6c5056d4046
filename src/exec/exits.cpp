#include "exec/exits.h"

#include "exec/order_file.h"
#include "step/book.h"

namespace berth {

Result<std::optional<ExitRecord>> read_exit(const RunDir& directory, AttemptId attempt) {
  const std::string path = directory.exit(attempt);
  BERTH_TRY(const auto bytes, get_file(path));
  if (!bytes) return std::nullopt;
  auto record = decode_exit(*bytes);
  if (!record) return fail(path + ": " + record.error().text());
  if (record->attempt != attempt) return fail(path + ": is the record of another attempt");
  record->steps = read_steps(directory.steps(attempt));
  return std::move(*record);
}

}  // namespace berth
