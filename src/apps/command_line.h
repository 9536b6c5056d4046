// All commands of the program with their options, told to the option library, and what they filled
// when it has parsed. Only cli.cpp and the sources of this class know the library.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "apps/cli.h"

namespace berth {

class CommandLine {
 public:
  CommandLine();

  [[nodiscard]] CliCommand describe() const;
  /// Throws what the library throws.
  void parse(int argc, const char* const* argv) { app_.parse(argc, argv); }
  [[nodiscard]] bool version_asked() const noexcept { return version_; }
  [[nodiscard]] Result<Command> command() const;

 private:
  using Maker = std::function<Result<Command>()>;
  static constexpr auto kInput = "Input";
  static constexpr auto kWorld = "Simulated world";
  static constexpr auto kOutput = "Output";

  CLI::App* add(const std::string& name, const std::string& summary, const std::string& examples,
                Maker maker);

  template <class T>
  static CLI::Option* take(CLI::App* sub, const std::string& names, T& target,
                           const std::string& value, const std::string& help,
                           const std::string& group = kInput) {
    CLI::Option* option = sub->add_option(names, target, help)->type_name(value)->group(group);
    if constexpr (std::is_unsigned_v<T>) {  // the library would read -1 as the largest number
      option->check([](const std::string& text) -> std::string {
        return text.starts_with('-') ? fmt::format("'{}' is no whole number of 0 or more", text)
                                     : "";
      });
    }
    return option;
  }
  static void flag(CLI::App* sub, const std::string& names, bool& target, const std::string& help,
                   const std::string& group) {
    sub->add_flag(names, target, help)->group(group);
  }

  // Options that several commands share.
  static void add_window(CLI::App* sub, InputOptions& input);
  static void add_input(CLI::App* sub, InputOptions& input);
  static void add_world(CLI::App* sub, WorldOptions& world);
  static void add_output(CLI::App* sub, OutputOptions& output);

  // Traces and what becomes of them (command_line_traces.cpp).
  void add_simulate();
  void add_compare();
  void add_generate();
  void add_convert();
  void add_check();
  void add_report();

  // Everything else (command_line.cpp).
  void add_serve();
  void add_demo();
  void add_export();
  void add_lists();
  void add_models();
  void add_topology();
  void add_fit();
  void add_reproduce();
  void add_completion();

  CLI::App app_;
  std::vector<std::pair<CLI::App*, Maker>> makers_;
  SimulateOptions simulate_;
  CompareOptions compare_;
  GenerateCommand generate_;
  ConvertOptions convert_;
  CheckOptions check_;
  ReportOptions report_;
  ServeOptions serve_;
  DemoOptions demo_;
  ExportOptions export_;
  ProfilesOptions profiles_;
  std::vector<std::string> serve_settings_;
  PoliciesOptions policies_;
  ModelsOptions models_;
  TopologyOptions topology_;
  FitOptions fit_;
  ReproduceCommand reproduce_;
  bool list_json_ = false;
  std::string shell_;
  bool version_ = false;
  bool help_ = false;
};

}  // namespace berth
