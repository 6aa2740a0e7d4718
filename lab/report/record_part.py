"""What every part of a record has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt

Window = Annotated[tuple[FiniteFloat, FiniteFloat], Field(description="[low, high], both ends included")]
CopyRange = Annotated[tuple[NonNegativeInt, NonNegativeInt], Field(description="[low, high], both ends included")]


class Part(BaseModel):
    """Frozen, tolerant of keys that a later version adds, intolerant of NaN and infinity."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, use_attribute_docstrings=True)
