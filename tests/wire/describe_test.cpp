// One description, and what comes of it: writing, reading, refusing, OpenAPI, TypeScript.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/body.h"
#include "wire/reader.h"
#include "wire/shape.h"
#include "wire/tree.h"

namespace berth {
namespace {

enum class Colour : std::uint8_t { Red, Blue };

struct Wheel {
  double size = 0;
};
struct Cart {
  std::string name;
  bool is_full = false;
  std::int32_t load = 0;
  std::int64_t sold = 0;
  Colour colour{};
  std::optional<double> price{};
  std::optional<Wheel> spare{};
  std::vector<Wheel> wheels{};
  std::vector<std::int32_t> seats{};
  std::map<std::string, double> sizes{};
  std::vector<std::pair<std::string, std::string>> labels{};
  std::variant<std::int64_t, double, std::string> plate{};
  std::array<double, 2> uses{};
  std::string kind{};
  std::string note{};
};

struct Order {
  Colour colour{};
  std::optional<std::string> name{};
  std::optional<std::int32_t> load{};
};

}  // namespace

namespace wire {
template <>
struct Names<Colour> {
  static constexpr std::string_view kName = "Colour";
  static constexpr std::array kAll{std::pair{Colour::Red, std::string_view{"red"}},
                                   std::pair{Colour::Blue, std::string_view{"blue"}}};
};
template <>
struct Fields<Wheel> {
  static constexpr std::string_view kName = "Wheel";
  template <class W, class Visit>
  static void visit(W& w, Visit& v) {
    v("size", w.size, "in metres");
  }
};
constexpr std::array<std::string_view, 2> kUses{"work", "play"};
constexpr std::array<std::string_view, 2> kKinds{"ox", "hand"};
template <>
struct Fields<Cart> {
  static constexpr std::string_view kName = "Cart";
  static constexpr std::string_view kMeaning = "It rolls.";
  template <class C, class Visit>
  static void visit(C& c, Visit& v) {
    v("type", constant("cart"));
    v("name", needed(c.name));
    v("full", c.is_full);
    v("load", within(c.load, std::int64_t{0}, std::int64_t{9}));
    v("sold", or_null(c.sold), "null: not yet");
    v("colour", c.colour);
    v("price", c.price);
    v("spare", c.spare);
    v("wheels", c.wheels);
    v("seats", c.seats);
    v("sizes", c.sizes);
    v("labels", c.labels);
    v("plate", c.plate);
    v("uses", by_name(c.uses, kUses));
    v("kind", one_of(c.kind, kKinds));
    v("note", if_any(c.note));
  }
};
template <>
struct Fields<Order> {
  static constexpr std::string_view kName = "Order";
  template <class O, class Visit>
  static void visit(O& o, Visit& v) {
    v("colour", needed(o.colour));
    v("name", if_any(o.name));
    v("load", within(o.load, std::int64_t{0}, std::int64_t{9}));
  }
};
}  // namespace wire

namespace {

using nlohmann::json;

Cart full_cart() {
  return {.name = "a \"b\"",
          .is_full = true,
          .load = 3,
          .sold = 12,
          .colour = Colour::Blue,
          .price = 1.5,
          .spare = Wheel{0.25},
          .wheels = {{1}, {2}},
          .seats = {4, 5},
          .sizes = {{"x", 0.5}},
          .labels = {{"z", "1"}, {"a", "2"}},
          .plate = 2.0005,
          .uses = {7, 8},
          .kind = "ox",
          .note = "n"};
}

TEST(Describe, IsWrittenInItsOrder) {
  EXPECT_EQ(wire::to_json(full_cart()),
            R"({"type":"cart","name":"a \"b\"","full":true,"load":3,"sold":12,"colour":"blue",)"
            R"("price":1.5,"spare":{"size":0.25},"wheels":[{"size":1},{"size":2}],"seats":[4,5],)"
            R"("sizes":{"x":0.5},"labels":{"z":"1","a":"2"},"plate":2.001,)"
            R"("uses":{"work":7,"play":8},"kind":"ox","note":"n"})");
  EXPECT_EQ(wire::to_json(Cart{}),
            R"({"type":"cart","name":"","full":false,"load":0,"sold":null,"colour":"red",)"
            R"("price":null,"spare":null,"wheels":[],"seats":[],"sizes":{},"labels":{},)"
            R"("plate":0,"uses":{"work":0,"play":0},"kind":""})");
  EXPECT_EQ(json::parse(wire::to_sorted_json(full_cart())),
            json::parse(wire::to_json(full_cart())));
}

TEST(Describe, IsReadBack) {
  Cart cart;
  wire::read(json::parse(wire::to_json(full_cart())), cart);
  EXPECT_EQ(wire::to_json(cart), wire::to_json([] {
              Cart same = full_cart();
              same.labels = {{"a", "2"}, {"z", "1"}};  // JSON objects have no order
              return same;
            }()));
}

TEST(Describe, LeavesWhatMakesNoSense) {
  for (const char* text :
       {"null", "5", "[]", R"("x")",
        R"({"name":5,"full":"yes","load":1e30,"sold":null,"colour":"x"})",
        R"({"load":99999999999,"price":"much","spare":[],"wheels":{},"seats":"x","sizes":[1]})",
        R"({"spare":5,"wheels":[5,null],"uses":[1,2],"note":null,"unknown":{"a":[{}]}})"}) {
    Cart cart;
    wire::read(json::parse(text), cart);
    EXPECT_EQ(wire::to_json(cart), wire::to_json(Cart{})) << text;
  }
}

TEST(Describe, RefusesStrictly) {
  const auto complaints = [](const char* text) {
    const json body = json::parse(text);
    api::BodyReader source(body);
    Order order;
    wire::read_strictly(source, order);
    source.finish();
    return source.faults();
  };
  EXPECT_EQ(complaints(R"({"colour":"blue","name":"x","load":5})").size(), 0U);
  EXPECT_EQ(complaints(R"({"colour":"bleu","load":10,"nmae":1})"),
            (std::vector<std::string>{"colour: unknown (did you mean blue?)",
                                      "load: a whole number within 0 and 9 expected",
                                      "nmae: unknown (did you mean name?)"}));
}

TEST(Describe, IsASchema) {
  const std::array shapes{wire::shape_of<Cart>()};
  const json schemas = wire::openapi_schemas(shapes);
  EXPECT_EQ(schemas.size(), 3U);  // Cart, Colour, Wheel
  const json& cart = schemas["Cart"];
  EXPECT_EQ(cart["description"], "It rolls.");
  EXPECT_EQ(cart["required"], json::array({"name"}));
  const json& fields = cart["properties"];
  EXPECT_EQ(fields.size(), 16U);
  EXPECT_EQ(fields["type"]["enum"], json::array({"cart"}));
  EXPECT_EQ(fields["load"], (json{{"type", "integer"}, {"minimum", 0}, {"maximum", 9}}));
  EXPECT_EQ(fields["sold"],
            (json{{"type", "integer"}, {"nullable", true}, {"description", "null: not yet"}}));
  EXPECT_EQ(fields["colour"]["$ref"], "#/components/schemas/Colour");
  EXPECT_EQ(fields["wheels"]["items"]["$ref"], "#/components/schemas/Wheel");
  EXPECT_EQ(fields["sizes"]["additionalProperties"]["type"], "number");
  EXPECT_EQ(fields["plate"]["oneOf"].size(), 3U);
  EXPECT_EQ(fields["uses"]["properties"].size(), 2U);
  EXPECT_EQ(fields["kind"]["enum"], json::array({"ox", "hand"}));
  EXPECT_EQ(schemas["Wheel"]["nullable"], true);  // a spare one may be missing
}

TEST(Describe, IsTypeScript) {
  const std::array shapes{wire::shape_of<Cart>()};
  EXPECT_EQ(wire::typescript(shapes), R"(export type Colour = 'red' | 'blue';

export interface Wheel {
  /** in metres */
  size?: number;
}

/** It rolls. */
export interface Cart {
  type?: 'cart';
  name: string;
  full?: boolean;
  load?: number;
  /** null: not yet */
  sold?: number | null;
  colour?: Colour;
  price?: number | null;
  spare?: Wheel | null;
  wheels?: Wheel[];
  seats?: number[];
  sizes?: Record<string, number>;
  labels?: Record<string, string>;
  plate?: number | string;
  uses?: { work?: number; play?: number; };
  kind?: 'ox' | 'hand';
  note?: string;
}
)");
}

}  // namespace
}  // namespace berth
