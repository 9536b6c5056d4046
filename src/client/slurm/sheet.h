// Tables of sacct, sstat and sshare: columns of a fixed width under a rule, or values between
// delimiters (-p, -P).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::client::slurm {

struct SheetColumn {
  std::size_t field = 0;  // of the command's own
  std::string title;
  std::size_t width = 10;
  bool is_left = false;
};

struct SheetStyle {
  bool is_parsable = false;
  bool has_last_delimiter = false;  // -p
  std::string delimiter = "|";
  bool has_head = true;
};

/// A field that can be asked for with -o.
struct SheetField {
  std::string_view name;
  std::size_t width = 10;
  bool is_left = false;
};

/// "jobid,jobname%20,state%-10", in any case.
[[nodiscard]] Result<std::vector<SheetColumn>> sheet_columns(std::string_view text,
                                                             const std::vector<SheetField>& known);
[[nodiscard]] std::string sheet(const std::vector<SheetColumn>& columns,
                                const std::vector<std::vector<std::string>>& rows,
                                const SheetStyle& style);
/// Names in four columns, as -e prints them.
[[nodiscard]] std::string field_names(const std::vector<SheetField>& known);

}  // namespace berth::client::slurm
