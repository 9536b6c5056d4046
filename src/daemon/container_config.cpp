#include "daemon/container_config.h"

#include <fmt/format.h>

namespace berth {

namespace {

/// "podman run … {image} {command}", or {run: …, cleanup: …}.
void read_template(YamlFields& fields, const YAML::Node& value, const std::string& name,
                   ContainerOptions& containers) {
  ContainerTemplate made;
  if (value.IsScalar()) {
    made.run = value.Scalar();
  } else if (value.IsMap()) {
    static const std::vector<std::string> known{"run", "cleanup"};
    fields.check_keys(value, known, "a container template");
    made.run = fields.text(value, "run").value_or("");
    made.cleanup = fields.text(value, "cleanup").value_or("");
  } else {
    return fields.wrong(value.Mark(), fmt::format("{} is a command, or run and cleanup", name));
  }
  if (const auto words = template_words(made.run); !words)
    return fields.wrong(value.Mark(), fmt::format("{}: {}", name, words.error().text()));
  containers.templates[name] = std::move(made);
}

}  // namespace

void read_containers(YamlFields& fields, const YAML::Node& node, ContainerOptions& containers) {
  if (!node.IsDefined() || node.IsNull()) return;
  if (!node.IsMap())
    return fields.wrong(node.Mark(), "containers has 'default: NAME' and 'NAME: command' lines");
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) continue;
    const std::string name = entry.first.Scalar();
    if (name == "default" && entry.second.IsScalar())
      containers.use = entry.second.Scalar();
    else
      read_template(fields, entry.second, name, containers);
  }
  if (!containers.templates.contains(containers.use))
    fields.wrong(node.Mark(), fmt::format("default: there is no template '{}'", containers.use));
}

}  // namespace berth
