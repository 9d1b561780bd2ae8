"""Protobuf messages for tests, made without protoc: an order in one file, which imports a customer from another."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
CUSTOMER_TEXT = 'syntax = "proto3"; package shop; message Customer { string name = 1; }'
ORDER_TEXT = """
syntax = "proto3";
package shop;
import "shop/customer.proto";
message Other { int32 n = 1; }
message Order {
  int64 id = 1;
  message Line { string article = 1; double price = 2; repeated Line parts = 3; }
  repeated Line lines = 2;
  Customer customer = 3;
}
"""


def _field(name: str, number: int, kind: int, *, of: str = "", many: bool = False) -> Any:
    label = Field.LABEL_REPEATED if many else Field.LABEL_OPTIONAL
    return Field(name=name, number=number, type=kind, label=label, **({"type_name": of} if of else {}))  # type: ignore[arg-type]


def _files() -> list[Any]:
    customer = descriptor_pb2.FileDescriptorProto(name="shop/customer.proto", package="shop", syntax="proto3")
    customer.message_type.add(name="Customer").field.append(_field("name", 1, Field.TYPE_STRING))
    order = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto", package="shop", syntax="proto3", dependency=["shop/customer.proto"]
    )
    order.message_type.add(name="Other").field.append(_field("n", 1, Field.TYPE_INT32))
    made = order.message_type.add(name="Order")
    line = made.nested_type.add(name="Line")
    line.field.extend(
        [
            _field("article", 1, Field.TYPE_STRING),
            _field("price", 2, Field.TYPE_DOUBLE),
            _field("parts", 3, Field.TYPE_MESSAGE, of=".shop.Order.Line", many=True),
        ]
    )
    made.field.extend(
        [
            _field("id", 1, Field.TYPE_INT64),
            _field("lines", 2, Field.TYPE_MESSAGE, of=".shop.Order.Line", many=True),
            _field("customer", 3, Field.TYPE_MESSAGE, of=".shop.Customer"),
        ]
    )
    return [customer, order]


_POOL = descriptor_pool.DescriptorPool()
for _file in _files():
    _POOL.Add(_file)
Order: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("shop.Order"))
Line: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("shop.Order.Line"))
