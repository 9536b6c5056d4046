// Slurm's accounting: rows of sacct below a header (so that every input reaches the rows), its JSON,
// and the lines of jobcomp. Runs are joined to jobs here, by ids, users and times that anybody may
// have written.
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string bytes(as_text(data, size));
  const ReadOptions options{.format = "sacct", .skip_invalid = true};
  check_trace(bytes, options);
  check_trace(
      "JobID|User|State|Submit|Start|End|ElapsedRaw|AllocTRES|NCPUS|Restarts|JobName\n" + bytes,
      options);
  check_trace("JobID,Submit,Elapsed,Timelimit,ReqTRES,AllocGRES\n" + bytes, options);
  check_trace("JobId=1 UserId=a(1) Name=" + bytes, options);
  return 0;
}
