"""Operations with their own gradient: definition, binding, contract, one call."""
