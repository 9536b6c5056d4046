// One function per command, each in the source file of its name.
#pragma once

#include "apps/options.h"
#include "apps/terminal.h"

namespace berth {

[[nodiscard]] Exit execute(const SimulateOptions& options);
[[nodiscard]] Exit execute(const CompareOptions& options);
[[nodiscard]] Exit execute(const GenerateCommand& options);
[[nodiscard]] Exit execute(const ConvertOptions& options);
[[nodiscard]] Exit execute(const CheckOptions& options);
[[nodiscard]] Exit execute(const ReportOptions& options);
[[nodiscard]] Exit execute(const PoliciesOptions& options);
[[nodiscard]] Exit execute(const ListOptions& options);
[[nodiscard]] Exit execute(const ModelsOptions& options);
[[nodiscard]] Exit execute(const ReproduceCommand& options);
[[nodiscard]] Exit execute(const ServeOptions& options);
[[nodiscard]] Exit execute(const DemoOptions& options);
[[nodiscard]] Exit execute(const ExportOptions& options);
[[nodiscard]] Exit execute(const ProfilesOptions& options);
[[nodiscard]] Exit execute(const PrintOptions& options);

}  // namespace berth
